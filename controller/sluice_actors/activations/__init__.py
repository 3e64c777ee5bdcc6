"""Calls of services when a policy acts: the due calls, and their answers."""
