# Seconds to wait for an answer of Sluice's API before a page reports it as unreachable.
SLUICE_TIMEOUT = 5
