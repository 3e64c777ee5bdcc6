"""Motifs: code and a little state that regenerate a stored item, so that its bytes may go; knows no storage."""
