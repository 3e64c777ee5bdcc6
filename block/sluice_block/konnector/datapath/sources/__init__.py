"""What lies behind a volume's stack: Cinder's connection, as a plugin of nbdkit with its parameters."""
