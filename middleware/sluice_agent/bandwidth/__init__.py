"""Bandwidth on a node: limiters by node, method and flow, and the socket that workers take credit from."""
