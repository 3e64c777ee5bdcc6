"""Items in a folder of a file system: where their states lie, how they are changed, and the shim above."""
