"""Metric values: aggregated over nodes and routed to subscribers."""
