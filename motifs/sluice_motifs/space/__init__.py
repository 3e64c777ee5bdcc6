"""Spaces that are kept below a target size: their contents, the division of a target, contractions and
refills."""
