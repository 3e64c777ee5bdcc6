"""The panels *Monitoring*: metrics over time, and nodes."""
