"""Contract suites of motifs, for Sluice's own and for others; they need hypothesis."""
