"""``bw`` and ``slo``: what tenants move, and what they are promised of bandwidth."""
