"""Views of motifs, operations on many objects, and spaces."""
