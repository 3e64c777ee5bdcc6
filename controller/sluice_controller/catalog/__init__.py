"""State that every resource reads: policy cache, vocabulary, guards, nodes, groups."""
