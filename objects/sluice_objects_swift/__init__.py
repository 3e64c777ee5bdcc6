"""Typed objects on Swift: the daemon ``sluice-objectd``, which serves them on a storage node."""
