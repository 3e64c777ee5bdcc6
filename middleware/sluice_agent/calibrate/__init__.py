"""``sluice-agent calibrate``: measures what a node and its devices can carry."""
