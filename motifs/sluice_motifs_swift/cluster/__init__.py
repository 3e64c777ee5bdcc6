"""The state that the daemons of a cluster share through Redis, and the policies that they read."""
