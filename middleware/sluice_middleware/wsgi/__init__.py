"""Code shared by proxies and object servers: look-up of policies, bodies, headers, system metadata."""
