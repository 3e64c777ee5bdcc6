"""Filters on whole CSV objects: sorted, as an index, as Parquet."""
