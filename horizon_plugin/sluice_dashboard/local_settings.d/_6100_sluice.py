# Seconds that Sluice's API has for an answer before a page says that it is away.
SLUICE_TIMEOUT = 5
