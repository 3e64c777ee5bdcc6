"""The interface for clients, administrators and other versions: recorded once, and compared with today's code."""
