"""Filters that a project may use, and what it has deployed."""
