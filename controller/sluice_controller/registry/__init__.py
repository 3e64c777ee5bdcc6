"""Names in sentences: activations, terms, aliases, stereotypes, metrics, dependencies."""
