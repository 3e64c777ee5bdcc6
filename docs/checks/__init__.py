"""Checks of handwritten pages: links, anchors, shell blocks, length."""
