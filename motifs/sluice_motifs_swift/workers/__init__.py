"""What the node's proxy workers ask of the daemon."""
