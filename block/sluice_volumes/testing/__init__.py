"""A Cinder in memory, and what every Cinder does, as a suite of tests."""
