"""What a sentence may name: filters, metrics, terms, aliases."""
