"""Registry: what sentences may name beside filters and metrics."""
