"""Bandwidth: what tenants are promised, get and move, and where."""
