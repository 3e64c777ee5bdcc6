"""Storlets in containers, run without the Storlets middleware."""
