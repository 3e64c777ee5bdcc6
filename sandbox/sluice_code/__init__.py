"""Uploaded code: its store in Swift, the check of its digest, loading and trials."""
