"""The controller's REST API: policies from sentences, and their enforcement on every node."""
