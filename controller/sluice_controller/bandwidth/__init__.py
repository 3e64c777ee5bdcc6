"""Bandwidth objectives and SLOs by REST."""
