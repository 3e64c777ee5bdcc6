"""The key-value shim of motifs: LevelDB whose values may give up their bytes and are made again when they are read."""
