"""Items in a folder of a file system: their stored states, changes of them, and the shim above."""
