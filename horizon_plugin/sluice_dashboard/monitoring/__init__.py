"""Metrics over time: what is chosen in a page's URL, and the lines that are drawn of it."""
