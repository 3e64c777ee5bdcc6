"""Filters compiled to WebAssembly."""
