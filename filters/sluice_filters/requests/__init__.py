"""Request filters: they answer requests or change headers, and leave the bytes alone."""
