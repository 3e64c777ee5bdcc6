"""What the daemons of a cluster share through Redis, and what they read of its policies."""
