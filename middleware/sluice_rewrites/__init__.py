"""Rewrites: jobs that bring stored objects to what policies say, and what all who replace stored bytes share."""
