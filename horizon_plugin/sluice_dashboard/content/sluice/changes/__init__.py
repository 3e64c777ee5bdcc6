"""Who changed what, the way back, and where data lie."""
