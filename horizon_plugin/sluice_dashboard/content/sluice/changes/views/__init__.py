"""The pages of changes and of locality."""
