"""Replication daemons that respect the cap on replication."""
