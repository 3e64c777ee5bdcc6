"""Answers of the API as plain data."""
