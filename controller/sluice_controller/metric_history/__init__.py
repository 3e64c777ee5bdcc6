"""Reads the history of metrics: the selection of a query, its series, and the source of their points."""
