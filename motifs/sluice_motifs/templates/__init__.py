"""Templates that need only other items of the storage, and some that read external sources."""
