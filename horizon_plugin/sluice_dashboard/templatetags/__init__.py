"""Found by Django under this name."""
