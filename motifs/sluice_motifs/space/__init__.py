"""Spaces that are kept below a size: what they hold, how a size is divided, what is contracted and what is filled
again."""
