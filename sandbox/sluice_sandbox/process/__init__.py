"""Isolated processes: supervisor, worker, and the frames between them."""
