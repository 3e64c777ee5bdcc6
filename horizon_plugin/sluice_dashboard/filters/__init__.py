"""Filters as both dashboards show them: lists, descriptions, and setting them for a target."""
