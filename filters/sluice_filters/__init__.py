"""Stream filters without I/O, their chain and the contract they keep."""
