"""Stream filters without I/O, their chain and their contract."""
