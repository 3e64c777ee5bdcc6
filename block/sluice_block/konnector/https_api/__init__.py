"""The API over TLS, for the controller: who may call it, and the server."""
