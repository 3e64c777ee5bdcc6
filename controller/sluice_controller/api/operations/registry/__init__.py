"""/registry: activations, terms, aliases, groups, stereotypes, placement."""
