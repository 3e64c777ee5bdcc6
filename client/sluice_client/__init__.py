"""A client of the Sluice controller, for programs and for people; it imports nothing else of Sluice."""

from sluice_client.client import Client
from sluice_client.errors import ApiError, ClientError, Unreachable

__all__ = ["ApiError", "Client", "ClientError", "Unreachable"]
