"""The runtime's interface to a storage: the shim, the records of items, and leases."""
