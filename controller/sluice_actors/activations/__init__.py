"""Services that are called when a policy acts: which calls are due, and what was answered."""
