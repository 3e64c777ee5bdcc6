"""Base classes of the commands."""
