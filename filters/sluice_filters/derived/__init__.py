"""Filters that make another object out of one: for policies on GET, and for the motif template `derive`."""
