"""What is checked of pages that are written by hand: links, anchors, shell blocks, length."""
