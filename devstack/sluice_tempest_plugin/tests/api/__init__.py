"""Single calls of the API and their responses."""
