"""The kernel's requests to a mount, by subject: folders, files, items, motifs."""
