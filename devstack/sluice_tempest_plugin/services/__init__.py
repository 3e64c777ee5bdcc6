"""Clients that Tempest gives to tests."""

from sluice_tempest_plugin.services.api_client import SluiceClient

__all__ = ["SluiceClient"]
