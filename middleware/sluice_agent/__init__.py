"""The process beside Swift on every node: policies from Redis to a snapshot, counts to the bus."""
