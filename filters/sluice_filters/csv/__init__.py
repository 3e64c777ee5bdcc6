"""Filters on CSV objects at reading time: columns and rows, and whole tables."""
