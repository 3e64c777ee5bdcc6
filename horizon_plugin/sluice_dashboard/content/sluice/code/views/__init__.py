"""Lists, descriptions, and what changes them."""
