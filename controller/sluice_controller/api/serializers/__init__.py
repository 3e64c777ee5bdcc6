"""Shapes of requests and answers, for the schema."""
