"""What the panels *Volumes* of both dashboards show and do."""
