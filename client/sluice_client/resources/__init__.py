"""Columns of each resource as the commands print them."""
