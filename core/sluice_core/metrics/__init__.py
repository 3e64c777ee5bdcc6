"""Merging metric values of workers and nodes, and the list of metrics that nodes report."""
