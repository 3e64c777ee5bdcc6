"""Shapes of what operators look at: nodes, events, changes, rewrites, permissions."""
