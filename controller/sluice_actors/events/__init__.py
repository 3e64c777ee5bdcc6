"""The events that an actor host logs: its own, and those of nodes and floors that it watches."""
