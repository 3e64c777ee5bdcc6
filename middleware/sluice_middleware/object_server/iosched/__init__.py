"""I/O threads of streams and their I/O priority."""
