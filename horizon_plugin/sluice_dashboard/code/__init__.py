"""Filters, metrics and controllers: the pages of both dashboards, and the forms of administrators."""
