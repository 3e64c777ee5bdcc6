"""Disk files that store transformed bytes and show Swift the plain object."""
