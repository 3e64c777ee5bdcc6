"""Volumes of Cinder: the data in Redis about pools, tiers, volumes and operations on them."""
