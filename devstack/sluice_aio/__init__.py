"""A whole Sluice cluster on one machine: for playing, for the demo and for the functional tests."""
