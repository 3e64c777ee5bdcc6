"""The words that a sentence may name: filters, metrics, terms, aliases."""
