"""Monitoring: the project's own metrics over time."""
