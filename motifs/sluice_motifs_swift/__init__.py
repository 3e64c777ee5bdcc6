"""``sluice-motifs``: motifs of objects in Swift; the shim, and the daemon that runs beside the proxies of a node."""
