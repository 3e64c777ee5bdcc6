"""Isolated environments for filters: code that is not the administrator's own runs here, never in Swift."""
