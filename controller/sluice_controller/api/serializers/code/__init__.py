"""Shapes of uploaded code and of uploaded controllers."""
