"""Request filters: they answer requests or change headers, and do not change bytes."""
