"""Compression with random access: engines, frames, and the layout of their index."""
