"""Tests that Tempest runs against a cloud."""
