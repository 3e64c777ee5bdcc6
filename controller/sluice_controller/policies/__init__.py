"""Policies: create, update, delete, deploy, and what is in effect."""
