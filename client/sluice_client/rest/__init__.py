"""The REST client: transport, authentication, resources."""
