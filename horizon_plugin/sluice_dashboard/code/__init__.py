"""Filters, metrics and controllers: what both dashboards show of them, and what administrators do with them."""
