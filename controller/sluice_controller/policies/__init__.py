"""Policies: create, update, delete, deploy, and explain those in force."""
