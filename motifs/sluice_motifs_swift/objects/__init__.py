"""Swift as a storage of items: the shim, and its access to objects and containers."""
