"""The actor host: metric aggregators, policy actors and the runtime that they share."""
