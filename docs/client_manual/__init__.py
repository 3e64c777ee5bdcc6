"""The manual pages, written from the commands."""
