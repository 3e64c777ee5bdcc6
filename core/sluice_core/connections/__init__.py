"""Connections to RabbitMQ and to the agent of the node, and the URLs of Redis and RabbitMQ."""
