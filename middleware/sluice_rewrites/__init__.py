"""Rewrites: jobs that rewrite stored objects as policies say, and code shared by all that replace stored bytes."""
