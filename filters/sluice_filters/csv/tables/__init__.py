"""Filters on whole CSV objects: in another order, as places, as Parquet."""
