"""``filter``, ``dependency`` and ``activation``: code that policies set, its files, and URLs that are called."""
