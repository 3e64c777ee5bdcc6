"""``motif`` and ``space``: what makes objects again, and what is kept below a size."""
