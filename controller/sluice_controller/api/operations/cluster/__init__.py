"""Health, nodes, changes, export and import, metrics, schema."""
