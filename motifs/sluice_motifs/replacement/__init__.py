"""Replacement policies: the order in which the items of a space are contracted."""
