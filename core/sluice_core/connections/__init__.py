"""Connections to RabbitMQ, and the URLs of Redis and RabbitMQ."""
