"""The server of the API over TLS: every call needs a token (:mod:`tokens`)."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cheroot import wsgi
from cheroot.ssl.builtin import BuiltinSSLAdapter

from sluice_block.konnector.api import KonnectorApi, json_response
from sluice_block.konnector.https_api.tokens import TokenChecker, Unauthorized, open_checker
from sluice_core.errors import SluiceError
from sluice_core.options import OptionError


class AuthenticatedApi:
    """The API for those whose token ``tokens`` lets pass."""

    def __init__(self, api: KonnectorApi, tokens: TokenChecker) -> None:
        self._api = api
        self._tokens = tokens

    def __call__(self, environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            self._tokens.check(environment.get("HTTP_X_AUTH_TOKEN", ""))
        except SluiceError as error:
            answer = json_response(error.status, {"error": str(error)})
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
        except OSError as error:  # ssl.SSLError is one
            raise OptionError(f"options `tls_cert` and `tls_key`: `{certificate}`, `{key}`: {error}") from error
        adapter.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._server.ssl_adapter = adapter
        self._thread = threading.Thread(target=self._server.serve, name="https", daemon=True)

    def start(self) -> None:
        """Listen and serve.

        :raises OptionError: when the address cannot be listened at
        """
        try:
            self._server.prepare()
        except OSError as error:
            raise OptionError(f"option `bind`: {error}") from error
        self._thread.start()

    def stop(self) -> None:
        """End; calls that are under way are waited for."""
        self._server.stop()
        self._thread.join()


def parse_bind(text: str) -> tuple[str, int]:
    """Host and port of ``host:port``.

    :raises OptionError: when it is not that
    """
    try:
        found = urlsplit(f"//{text}")
        if found.hostname and found.port:
            return found.hostname, found.port
    except ValueError:
        pass
    raise OptionError(f"option `bind` is `{text}`, expected host:port")


def make_server(values: Mapping[str, Any], api: KonnectorApi, source: Path) -> HttpsServer:
    """The server that the options say.

    :param values: of :data:`sluice_block.konnector.settings.OPTIONS`
    :param source: the file that they are from
    :raises OptionError: when one cannot be used
    """
    address = parse_bind(values["bind"])
    if not values["tls_cert"]:
        raise OptionError("option `tls_cert` is empty, expected a certificate's file: `bind` is set")
    certificate = Path(values["tls_cert"])
    tokens = open_checker(Path(values["keystone_file"] or source))
    return HttpsServer(address, AuthenticatedApi(api, tokens), certificate, Path(values["tls_key"] or certificate))
