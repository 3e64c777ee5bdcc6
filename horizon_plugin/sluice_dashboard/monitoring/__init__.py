"""What the panels *Monitoring* show: metrics over time, and nodes."""
