"""Code of object servers: controller, read-time filters, disk files, I/O threads."""
