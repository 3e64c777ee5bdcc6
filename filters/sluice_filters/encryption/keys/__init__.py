"""Where root secrets come from: a key file or a key manager."""
