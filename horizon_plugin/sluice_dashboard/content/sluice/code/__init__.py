"""Filters, metrics and controllers: upload, roll-out, revisions, deployment."""
