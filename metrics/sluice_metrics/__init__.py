"""Workload metrics counted inside Swift workers."""
