"""Swift as a storage of items: the shim, and the objects and containers on which it stands."""
