"""Keystone and Barbican of the all-in-one cluster."""
