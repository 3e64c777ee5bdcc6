"""Checks of request bodies, parameters and names."""
