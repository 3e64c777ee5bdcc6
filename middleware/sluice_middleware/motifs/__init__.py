"""Objects with motifs in Swift, as proxies see them: their bytes may be gone, and are made while a client reads."""
