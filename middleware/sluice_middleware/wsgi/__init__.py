"""What proxies and object servers share: look-up of policies, bodies, headers, system metadata."""
