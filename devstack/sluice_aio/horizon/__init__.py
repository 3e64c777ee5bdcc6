"""Horizon with the panels of this clone, for one machine."""
