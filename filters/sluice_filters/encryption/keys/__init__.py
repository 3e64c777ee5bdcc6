"""Sources of root secrets: a key file or a key manager."""
