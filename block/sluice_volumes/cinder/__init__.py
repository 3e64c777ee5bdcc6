"""Cinder, and the requests of Sluice's processes to it."""
