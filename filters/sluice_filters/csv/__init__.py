"""Filters on CSV objects while they are read: columns and rows, and whole tables."""
