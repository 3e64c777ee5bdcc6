"""Keeps the history of metrics: the choice of series, their values second by second, and the rows for Redis."""
