"""The cache of objects on a proxy node."""
