"""Whether all is well, in one look."""
