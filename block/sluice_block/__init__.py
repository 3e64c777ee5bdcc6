"""Volumes: a driver for Cinder, and the filters and limits of attached volumes."""
