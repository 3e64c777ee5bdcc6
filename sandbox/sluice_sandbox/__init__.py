"""Isolated environments for filters: code of others than the administrator runs here, never in Swift."""
