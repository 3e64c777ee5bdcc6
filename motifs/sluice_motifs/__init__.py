"""Motifs: code and a small state that make the bytes of a stored item, so that it can be contracted; no storage."""
