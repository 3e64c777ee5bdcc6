"""The whole configuration: changes, export, import, rollback."""
