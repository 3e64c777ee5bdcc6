"""The last reports of nodes, in arrays."""
