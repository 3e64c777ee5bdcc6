"""Cinder as our processes ask it."""
