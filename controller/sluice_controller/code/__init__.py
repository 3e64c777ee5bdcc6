"""Uploaded code: reception, revisions, trials, roll-out."""
