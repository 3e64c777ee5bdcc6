"""The API over TLS: every call needs a token of Keystone, whose user has a role of :data:`ROLES`.

Answers of Keystone are cached for a while, so a revoked token may be accepted for that time.  The section
``[keystone_authtoken]`` has the options that every service of OpenStack has there.
"""

from __future__ import annotations

import hashlib
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cheroot import wsgi
from cheroot.ssl.builtin import BuiltinSSLAdapter
from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading, plugin, session

from sluice_block.konnector.api import KonnectorApi, json_response
from sluice_core.errors import CallerError, PeerError, SluiceError
from sluice_core.options import OptionError, read_ini
from sluice_core.process.logs import request_id

SECTION: Final = "keystone_authtoken"
#: Roles of which the user needs one.
ROLES: Final = ("service", "admin")
#: Seconds for which an answer of Keystone is cached, unless ``token_cache_time`` is set.
_CACHED: Final = 60.0
_MOST: Final = 1000
#: Seconds for an answer of Keystone.
_TIMEOUT: Final = 10.0
_IDENTITY: Final = {"service_type": "identity", "interface": plugin.AUTH_INTERFACE, "version": (3, 0)}


class Unauthorized(CallerError):
    """The caller is not authenticated."""

    status = 401


class Forbidden(CallerError):
    """The caller may not do this."""

    status = 403


class TokenChecker:
    """Checks tokens by ``keystone``, and caches the answers for ``cached`` seconds."""

    def __init__(
        self, keystone: session.Session, cached: float = _CACHED, now: Callable[[], float] = time.time
    ) -> None:
        self._keystone = keystone
        self._cached = cached
        self._now = now
        self._lock = threading.Lock()
        #: Hash of a token → the end of its cache entry, and its roles.
        self._known: dict[bytes, tuple[float, frozenset[str]]] = {}

    def check(self, token: str) -> None:
        """Return if the owner of ``token`` is permitted.

        :raises Unauthorized: when it is missing, or Keystone refuses it
        :raises Forbidden: when the user has none of :data:`ROLES`
        :raises PeerError: when Keystone is not reachable
        """
        if not token:
            raise Unauthorized("a token is needed in `X-Auth-Token`")
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        with self._lock:
            until, roles = self._known.get(digest, (0.0, frozenset()))
        if self._now() >= until:
            until, roles = self._ask(token)
            with self._lock:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[digest] = (min(until, self._now() + self._cached), roles)
        if not roles.intersection(ROLES):
            raise Forbidden(f"the user of this token has no role {' or '.join(f'`{one}`' for one in ROLES)}")

    def _ask(self, token: str) -> tuple[float, frozenset[str]]:
        """Request the expiry of the token, in unix seconds, and its roles from Keystone."""
        try:
            answer = self._keystone.get(
                "/auth/tokens", endpoint_filter=_IDENTITY, headers={"X-Subject-Token": token}
            ).json()["token"]
            ends = datetime.fromisoformat(answer["expires_at"]).replace(tzinfo=UTC).timestamp()
            return ends, frozenset(str(one["name"]) for one in answer.get("roles", ()))
        except ksa.NotFound as error:
            raise Unauthorized("keystone does not know this token") from error
        except (ksa.Unauthorized, ksa.Forbidden) as error:
            raise PeerError("keystone does not let the konnector's user ask about tokens") from error
        except (ksa.ClientException, ValueError, KeyError, TypeError) as error:
            raise PeerError(f"keystone cannot be asked about a token: {type(error).__name__}") from error


def open_checker(*paths: Path) -> TokenChecker:
    """Return a checker for the Keystone in the section of the files at ``paths``; it sends no request yet.

    :raises OptionError: when the files have no such section, or lack an option
    """
    named = ", ".join(map(str, paths))
    parser = read_ini(paths)
    try:
        section: Mapping[str, str] = parser[SECTION]
        cached = float(section.get("token_cache_time", _CACHED))
        loader: Any = loading.get_plugin_loader(section.get("auth_type", "password"))
        auth = loader.load_from_options_getter(lambda option: section.get(option.dest))
    except KeyError as error:
        raise OptionError(f"`{named}` has no section [{SECTION}], which the API over TLS needs") from error
    except (ValueError, ksa.ClientException) as error:
        raise OptionError(f"{named} [{SECTION}]: {error}") from error
    verify: bool | str = section.get("insecure", "").lower() not in ("true", "1", "yes") and (
        section.get("cafile") or True
    )
    return TokenChecker(session.Session(auth=auth, verify=verify, timeout=_TIMEOUT), cached)


class AuthenticatedApi:
    """The API for callers whose token ``tokens`` accepts."""

    def __init__(self, api: KonnectorApi, tokens: TokenChecker) -> None:
        self._api = api
        self._tokens = tokens

    def __call__(self, environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            self._tokens.check(environment.get("HTTP_X_AUTH_TOKEN", ""))
        except SluiceError as error:
            answer = json_response(error.status, {"error": str(error)}, request_id(""))
            if isinstance(error, Unauthorized):
                answer.headers["WWW-Authenticate"] = "Keystone"
            refused: Iterable[bytes] = answer(environment, start_response)
            return refused
        return self._api(environment, start_response)


class HttpsServer:
    """A thread that serves ``api`` at ``address``, a host and a port."""

    def __init__(self, address: tuple[str, int], api: AuthenticatedApi, certificate: Path, key: Path) -> None:
        """
        :raises OptionError: when the certificate or its key cannot be used
        """
        self._server = wsgi.Server(address, api, server_name="sluice-konnector")
        try:
            adapter = BuiltinSSLAdapter(str(certificate), str(key))
        except OSError as error:  # ssl.SSLError is a subclass
            raise OptionError(f"options `tls_cert` and `tls_key`: `{certificate}`, `{key}`: {error}") from error
        adapter.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._server.ssl_adapter = adapter
        self._thread = threading.Thread(target=self._server.serve, name="https", daemon=True)

    def start(self) -> None:
        """Listen and serve.

        :raises OptionError: when it cannot listen at the address
        """
        try:
            self._server.prepare()
        except OSError as error:
            raise OptionError(f"option `bind`: {error}") from error
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for calls in progress."""
        self._server.stop()
        self._thread.join()


def parse_bind(text: str) -> tuple[str, int]:
    """Return host and port of ``host:port``.

    :raises OptionError: when it has another form
    """
    try:
        found = urlsplit(f"//{text}")
        if found.hostname and found.port:
            return found.hostname, found.port
    except ValueError:
        pass
    raise OptionError(f"option `bind` is `{text}`, expected host:port")


def make_server(values: Mapping[str, Any], api: KonnectorApi, *sources: Path) -> HttpsServer:
    """Return the server of the options.

    :param values: of :data:`sluice_block.konnector.settings.OPTIONS`
    :param sources: the files of these values
    :raises OptionError: when one cannot be used
    """
    address = parse_bind(values["bind"])
    if not values["tls_cert"]:
        raise OptionError("option `tls_cert` is empty, expected a certificate's file: `bind` is set")
    certificate = Path(values["tls_cert"])
    tokens = open_checker(*([Path(values["keystone_file"])] if values["keystone_file"] else sources))
    return HttpsServer(address, AuthenticatedApi(api, tokens), certificate, Path(values["tls_key"] or certificate))
