"""Single calls of the API and what they are answered."""
