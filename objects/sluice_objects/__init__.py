"""Typed objects: one linearizable object on the object servers of Swift, and what stands on it."""
