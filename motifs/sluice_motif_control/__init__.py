"""Motifs for code without a runtime: the actions of the language, spaces, calls to the daemons and their reports."""
