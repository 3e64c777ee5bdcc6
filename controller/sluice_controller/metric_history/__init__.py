"""The history of metrics, read: what is asked for, which series has it, and where the points come from."""
