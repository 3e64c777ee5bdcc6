"""Callers and their permissions: tokens, Keystone, rules."""
