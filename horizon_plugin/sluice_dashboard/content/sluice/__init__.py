"""The dashboard of administrators."""
