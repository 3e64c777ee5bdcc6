"""The LMDB snapshot of a node: written by the agent, read by every Swift worker."""
