"""What the panel *Changes and locality* shows: who changed what, the way back, and where data lie."""
