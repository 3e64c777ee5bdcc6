"""Templates that need nothing but other items of the storage."""
