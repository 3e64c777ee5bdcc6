"""Django finds template tags under this name."""
