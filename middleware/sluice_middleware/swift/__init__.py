"""All imports from Swift, with its exceptions translated."""
