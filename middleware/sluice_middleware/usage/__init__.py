"""Reads what is stored on a storage node, and the space for it; the agent starts it as ``python -m``."""
