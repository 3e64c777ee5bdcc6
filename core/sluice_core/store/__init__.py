"""The data in Redis: key names, scripts, operations, and the stores that run them."""
