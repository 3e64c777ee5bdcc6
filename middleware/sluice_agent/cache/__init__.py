"""Keeps the object caches of a cluster's proxies coherent: agents tell each other of writes."""
