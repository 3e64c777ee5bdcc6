"""A Cinder in memory, and the contract of every Cinder, as a suite of tests."""
