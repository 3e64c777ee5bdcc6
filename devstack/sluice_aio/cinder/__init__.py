"""Cinder of the all-in-one cluster."""
