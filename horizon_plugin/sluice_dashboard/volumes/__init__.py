"""The panels *Volumes* of both dashboards."""
