"""Metrics for Prometheus: of the API and the cluster, of tenants, of volumes."""
