"""``filter``, ``dependency`` and ``activation``: code that policies set, what it needs, and what is called then."""
