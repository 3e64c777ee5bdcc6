"""The dashboard of projects."""
