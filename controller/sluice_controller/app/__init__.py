"""The Django application: settings, URLs, server, logs, checks at start."""
