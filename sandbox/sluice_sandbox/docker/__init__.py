"""Storlets' Docker engine: its client, the image, and where they are."""
