"""A whole Sluice cluster on one machine: for development, for the demo and for the functional tests."""
