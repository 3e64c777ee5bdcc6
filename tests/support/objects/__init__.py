"""Simulated devices, networks and replicators of typed objects."""
