"""The address of the controller and the identity that ``sluice`` uses.

For address and identity, each, the first of these counts: an option, ``SLUICE_URL`` or ``SLUICE_TOKEN_FILE``, the cloud
in ``OS_CLOUD`` or ``OS_AUTH_URL``.  ``--os-cloud`` is an option, and sets both: the token of a cloud is never sent to
an address that only the environment names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_client.errors import ClientError
from sluice_client.rest.auth import SERVICE_TYPE, read_token
from sluice_client.rest.client import Client

DEFAULT_URL: Final = "http://127.0.0.1:8877"
#: Clouds of openstacksdk that are no entries of clouds.yaml.
_NO_CLOUDS: Final = frozenset(("defaults", "envvars"))
#: With any of these, openstacksdk finds a cloud in the environment.
_OF_CLOUD: Final = ("OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of command line and environment; None: not set.  ``cloud``: empty for what ``OS_*`` describe."""

    url: str | None
    token_file: str | None
    cloud: str | None

    @classmethod
    def read(
        cls, url: str | None, token_file: str | None, os_cloud: str | None, environ: Mapping[str, str]
    ) -> Settings:
        """Return the effective settings.

        :param url: the option of that name, as are ``token_file`` and ``os_cloud``
        :raises ClientError: when two of them contradict each other
        """
        if os_cloud is not None:
            if token_file is not None:
                raise ClientError("`--token-file` and `--os-cloud` are given, expected one of both")
            return cls(url, None, os_cloud)
        url = url or environ.get("SLUICE_URL") or None
        token_file = environ.get("SLUICE_TOKEN_FILE") or None if token_file is None else token_file
        is_cloud = token_file is None and any(environ.get(name) for name in _OF_CLOUD)
        return cls(url, token_file, environ.get("OS_CLOUD", "") if is_cloud else None)

    def connect(self, timeout: float) -> Client:
        """Return the client, without a request yet.

        :param timeout: seconds for each answer
        :raises ClientError: when the token or the cloud cannot be read
        """
        if self.cloud is None:
            return Client(self.url or DEFAULT_URL, read_token(self.token_file or ""), timeout)
        return cloud_client(self.cloud, self.url or "", timeout)


def cloud_client(cloud: str, url: str, timeout: float) -> Client:
    """Return a client with the identity of a cloud, which openstacksdk reads from clouds.yaml and ``OS_*``.

    :param cloud: its name; empty for that of the environment
    :param url: of the controller; empty for that of the cloud, or of its service catalogue
    :raises ClientError: when there is no such cloud, or openstacksdk is not installed
    """
    try:
        from keystoneauth1.exceptions import ClientException
        from openstack.config import OpenStackConfig
        from openstack.exceptions import SDKException
    except ImportError as error:
        needed = "expected it by `pip install 'openstack-sluice[openstack]'`"
        raise ClientError(f"clouds.yaml and `OS_*` are read by openstacksdk, which is not here: {needed}") from error
    named = f"the cloud `{cloud}`" if cloud else "the cloud of `OS_*`"
    try:
        config = OpenStackConfig(app_name="sluice")
        known = config.get_cloud_names()
        if cloud and cloud not in known:
            raise ClientError(f"{named} is not in clouds.yaml, {_expected(cloud, known)}")
        region = config.get_one(cloud=cloud or None)
        session = region.get_session()
    except (SDKException, ClientException) as error:
        raise ClientError(f"{named} cannot be used: {str(error).rstrip('.')}") from error
    interface = region.get_interface(SERVICE_TYPE) or "public"
    endpoint = url or region.get_endpoint(SERVICE_TYPE) or ""
    side = interface if isinstance(interface, str) else interface[0]
    return Client.from_session(session, endpoint, side, region.get_region_name(SERVICE_TYPE) or "", timeout)


def _expected(cloud: str, known: Iterable[str]) -> str:
    """What was most likely meant by a cloud that is not among those that openstacksdk knows."""
    names = sorted(set(known) - _NO_CLOUDS)
    near = difflib.get_close_matches(cloud, names, 1)
    if near:
        return f"did you mean `{near[0]}`"
    if names:
        return f"expected {' or '.join(f'`{one}`' for one in names)}"
    return (
        "which is read from this folder, `~/.config/openstack` or `/etc/openstack`, or named by `OS_CLIENT_CONFIG_FILE`"
    )
