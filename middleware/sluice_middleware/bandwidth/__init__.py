"""Bandwidth in a Swift worker: credit from the agent, wait queues, throttled bodies."""
