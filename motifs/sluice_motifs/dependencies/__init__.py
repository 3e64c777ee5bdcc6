"""Relations of items to their sources: freshness, availability, and checks of new motifs."""
