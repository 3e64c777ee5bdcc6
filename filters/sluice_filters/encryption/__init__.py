"""Authenticated encryption in segments, checksums, and the keys."""
