"""Volumes of Cinder: tiers, volumes, their attachments, and operations on them."""
