"""Keeps the history of metrics: which series, their values second by second, and what is written into Redis."""
