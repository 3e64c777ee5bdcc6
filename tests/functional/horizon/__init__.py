"""A package, so that the clusters of its `conftest.py` (scope `package`) end with its last test."""
