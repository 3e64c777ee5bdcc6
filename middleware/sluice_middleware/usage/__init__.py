"""Reads the usage and space of a storage node; the agent starts it as ``python -m``."""
