"""Objects with motifs in Swift, as proxies see them: the bytes of a contracted object are made while a client reads."""
