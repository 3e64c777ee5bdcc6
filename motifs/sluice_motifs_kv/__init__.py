"""The key-value shim of motifs: LevelDB whose values can be contracted and are made again when they are read."""
