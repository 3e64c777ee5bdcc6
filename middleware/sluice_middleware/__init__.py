"""What runs inside Swift: the proxy middleware, its body adapters and its counters."""
