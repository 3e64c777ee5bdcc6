"""Contraction of items, and the hidden copies from which some of them are made."""
