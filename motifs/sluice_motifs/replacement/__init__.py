"""Replacement policies: in which order the items of a space give up their bytes."""
