"""Filters of volumes that administrators upload: tried, confined, watched, and refused after repeated faults."""
