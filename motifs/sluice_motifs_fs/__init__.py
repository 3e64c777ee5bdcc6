"""Motifs in a file system: files that can be contracted, over FUSE."""
