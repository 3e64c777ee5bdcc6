"""Motifs in a file system: files that give up their bytes, over FUSE."""
