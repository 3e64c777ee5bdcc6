"""What a volume passes on a machine: its source, its stack, its front, its device, and their processes."""
