"""Names that sentences use: activations, terms, aliases, stereotypes, metrics, dependencies."""
