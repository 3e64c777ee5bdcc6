"""Replication daemons that keep to the cap on replication."""
