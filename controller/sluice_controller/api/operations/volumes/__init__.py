"""Views of volumes, tiers and operations."""
