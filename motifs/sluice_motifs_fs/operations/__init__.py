"""What the kernel asks of a mount, by what it concerns: folders, files, items, motifs."""
