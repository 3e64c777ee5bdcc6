"""All that is imported from Swift, translated here."""
