"""Uploaded filters, metrics, controllers and dependencies."""
