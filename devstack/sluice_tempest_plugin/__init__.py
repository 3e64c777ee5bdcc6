"""Tempest's tests of Sluice: the API, and what its policies do to the objects of a real Swift."""
