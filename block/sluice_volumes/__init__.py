"""Volumes of Cinder: what Redis keeps of pools, tiers, volumes and operations on them."""
