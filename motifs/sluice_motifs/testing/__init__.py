"""Contract suites of motifs, for ours and for those of others; they need hypothesis."""
