"""Opening contracted or stale items: their bytes are made once, for all their readers."""
