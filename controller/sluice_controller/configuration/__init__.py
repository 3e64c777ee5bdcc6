"""The whole configuration: changes, export, import, roll back."""
