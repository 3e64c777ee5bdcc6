"""Giving up the bytes of items, and the hidden copies that some of them are made from."""
