"""The metrics that Sluice ships: of requests, of bytes, and of what uploads consist of."""
