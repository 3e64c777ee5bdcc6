"""Filters of documents and pictures."""
