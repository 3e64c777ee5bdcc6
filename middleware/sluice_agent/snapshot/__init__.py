"""The node's snapshot: follows the change stream, acknowledges changes, refuses assignments."""
