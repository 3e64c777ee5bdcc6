"""Policies: what storage shall do, in sentences."""
