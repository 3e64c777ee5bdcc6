"""The data path of a volume on a machine: its source, its stack, its front, its device, and their processes."""
