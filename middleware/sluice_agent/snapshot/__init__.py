"""The node's snapshot: follows the change stream, acknowledges, refuses."""
