"""Volumes: a driver for Cinder, and the filters and limits of what a machine attaches."""
