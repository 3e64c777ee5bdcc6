"""Motifs of objects, operations on many of them, and spaces: what the API asks of daemons, and reads in Redis."""
