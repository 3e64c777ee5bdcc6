"""Tempest tests of Sluice: the API, and the effect of its policies on objects of a real Swift."""
