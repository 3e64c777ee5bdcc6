"""Motifs for whoever knows no runtime: the words of the language, spaces, calls to the daemons and what they report."""
