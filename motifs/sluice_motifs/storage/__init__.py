"""What the runtime asks of a storage: the shim, what it records with items, and leases."""
