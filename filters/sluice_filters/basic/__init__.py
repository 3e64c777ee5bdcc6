"""Filters that show the contract in a few lines."""
