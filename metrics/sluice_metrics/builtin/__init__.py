"""The metrics of Sluice: of requests, of responses, of bytes, and of the content of uploads."""
