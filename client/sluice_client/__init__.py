"""A client of the Sluice controller, as a library and as commands; it imports nothing else of Sluice."""

from sluice_client.errors import ApiError, ClientError, Unreachable
from sluice_client.rest.client import Client
from sluice_client.rest.transport import Retries

__all__ = ["ApiError", "Client", "ClientError", "Retries", "Unreachable"]
