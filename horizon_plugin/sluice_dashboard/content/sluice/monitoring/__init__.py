"""Monitoring: nodes, and what they carry beside the loads of tenants."""
