"""The plugin of python-openstackclient: options, and the client of the commands.

The controller's URL comes from the service catalogue (service type ``sluice``), unless an endpoint is given.  Without
Keystone, use ``--os-auth-type none --os-endpoint URL`` and the token file of ``sluice``.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any, Final

from sluice_client.errors import ClientError
from sluice_client.rest.auth import read_token
from sluice_client.rest.client import Client

DEFAULT_API_VERSION: Final = "1"
API_VERSION_OPTION: Final = "os_sluice_api_version"
API_NAME: Final = "sluice"
API_VERSIONS: Final = ("1",)


def make_client(instance: Any) -> Client:
    """Called once by openstackclient, when a command needs the client.

    :raises ClientError: when there is no endpoint, or the token cannot be read
    """
    options = instance.get_configuration()
    endpoint = options.get("sluice_endpoint") or options.get("sluice_endpoint_override") or ""
    token = read_token(options.get("sluice_token_file") or "")
    if not token:
        return Client.from_session(
            instance.session, endpoint, instance.interface or "public", instance.region_name or ""
        )
    endpoint = endpoint or instance.get_endpoint_for_service_type(
        API_NAME, region_name=instance.region_name, interface=instance.interface
    )
    if not endpoint:
        raise ClientError("there is no endpoint, expected `--os-sluice-endpoint` or a service `sluice`")
    return Client(endpoint, token)


def build_option_parser(parser: ArgumentParser) -> ArgumentParser:
    """Called by openstackclient for the global options."""
    parser.add_argument(
        "--os-sluice-api-version",
        metavar="<sluice-api-version>",
        default=os.environ.get("OS_SLUICE_API_VERSION", DEFAULT_API_VERSION),
        choices=API_VERSIONS,
        help="Sluice API version, default: 1 (Env: OS_SLUICE_API_VERSION)",
    )
    parser.add_argument(
        "--os-sluice-endpoint",
        metavar="<sluice-endpoint>",
        default=os.environ.get("OS_SLUICE_ENDPOINT", ""),
        help="Sluice controller, default: from the service catalogue (Env: OS_SLUICE_ENDPOINT)",
    )
    parser.add_argument(
        "--os-sluice-token-file",
        metavar="<sluice-token-file>",
        default=os.environ.get("SLUICE_TOKEN_FILE", ""),
        help="file with the controller's admin token, for use without Keystone (Env: SLUICE_TOKEN_FILE)",
    )
    return parser
