"""The metrics that Sluice ships: of requests, of responses, of bytes, and of what uploads consist of."""
