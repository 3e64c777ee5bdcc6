"""The controller's REST API: sentences in, policies out, and what every node made of them."""
