"""What is known, for every resource: policy cache, vocabulary, guards, nodes, groups."""
