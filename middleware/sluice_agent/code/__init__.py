"""Uploaded code on a node: fetched, verified, tried, and kept for the workers."""
