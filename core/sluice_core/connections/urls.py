"""URLs of Redis and RabbitMQ, parsed in one place for both.

One URL holds everything: hosts (several between commas), login, TLS.  Schemes such as ``rediss`` and ``amqps`` mean
TLS; these options may then follow the ``?``, named as redis-py names them::

    ssl_ca_certs=FILE        authorities that may sign the server's certificate (default: the system's)
    ssl_certfile=FILE        the client's certificate, if the server requires one
    ssl_keyfile=FILE         its key, if that is another file
    ssl_check_hostname=false the certificate need not name the host (it must be signed all the same)

A server's certificate is always verified, without an option to disable this.

No password appears in an error, a log or a ``repr``: messages name a URL by its hosts and ports, and a URL that cannot
be parsed only by its scheme.
"""

from __future__ import annotations

import difflib
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sluice_core.options import OptionError

TLS_OPTIONS: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname")
_LAST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class Host:
    """One address of a server, and how to log in there."""

    name: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class ServerUrl:
    """A URL's parts, decoded; ``path`` without its first slash, ``hosts`` empty for a Unix socket."""

    scheme: str
    hosts: tuple[Host, ...]
    path: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """Hosts and ports, for messages."""
        return ",".join(map(str, self.hosts)) or self.path

    def whole(self, name: str, default: int, low: int = 0, high: int = 2**31) -> int:
        """Return the option ``name`` as a whole number.

        :raises OptionError: when it is not a whole number between ``low`` and ``high``
        """
        return whole_number(self.options.get(name, str(default)), f"option `{name}`", low, high)

    def tls(self) -> ssl.SSLContext:
        """Return the TLS context, from the files that the options name.

        :raises OptionError: naming the option whose file cannot be used
        """
        authorities, certificate, key = (self.options.get(name) for name in TLS_OPTIONS[:3])
        try:
            context = ssl.create_default_context(cafile=authorities)
        except (OSError, ssl.SSLError) as error:
            raise OptionError(f"option `ssl_ca_certs`: cannot use `{authorities}`: {_reason(error)}") from error
        if certificate is not None:
            try:
                context.load_cert_chain(certificate, key, password=_no_password)
            except (OSError, ssl.SSLError) as error:
                files = f"`{certificate}`" if key is None else f"`{certificate}` with `{key}`"
                raise OptionError(f"option `ssl_certfile`: cannot use {files}: {_reason(error)}") from error
        context.check_hostname = check_hostname(self.options)
        return context


def parse_url(url: str, schemes: Mapping[str, int], options: Iterable[str], forms: str) -> ServerUrl:
    """Return the parts of ``url``.

    :param schemes: the possible schemes, and their default ports; 0 for those with a path and no host
    :param options: names that may stand after the ``?``, besides those of TLS
    :param forms: the expected forms, for errors
    :raises OptionError: when ``url`` has none of these forms
    """
    scheme = url.partition("://")[0] if "://" in url else ""
    try:
        parts = urlsplit(url)
        if parts.scheme not in schemes or parts.fragment:
            raise ValueError
        given_options = _read_options(parts, (*options, *TLS_OPTIONS))
        hosts = _hosts(parts, schemes[parts.scheme])
    except ValueError as error:
        # the text of a parser's error may hold a part of the password
        known = error if isinstance(error, _Fault) else "it cannot be taken apart (are `@ : / ? #` in names encoded?)"
        if scheme not in schemes:
            known = f"scheme `{scheme}` is not known" if scheme.replace("+", "").isalnum() else "it has no scheme"
        raise OptionError(f"not a URL: {known}, expected {forms}") from None
    user, password = (hosts[0].user, hosts[0].password) if hosts else _login(parts.netloc.rpartition("@")[0])
    path = unquote(parts.path if not hosts else parts.path.removeprefix("/"))
    return ServerUrl(parts.scheme, hosts, path, user, password, given_options)


class _Fault(ValueError):
    """A fault of a URL whose text may be shown."""


def whole_number(text: str, what: str, low: int = 0, high: int = 2**31) -> int:
    """Return ``text`` as a number.

    :raises OptionError: naming ``what``
    """
    if text.isdecimal() and low <= int(text) <= high:
        return int(text)
    raise OptionError(f"{what} is `{text}`, expected {low} to {high}")


def _hosts(parts: SplitResult, usual: int) -> tuple[Host, ...]:
    if not usual:
        if parts.netloc.rpartition("@")[2] or not parts.path:
            raise _Fault("a socket has an absolute path and no host")
        return ()
    hosts: list[Host] = []
    for text in parts.netloc.split(","):
        login, at, place = text.rpartition("@")
        name, port = _address(place, usual)
        user, password = _login(login) if at else (hosts[0].user, hosts[0].password) if hosts else ("", "")
        hosts.append(Host(name, port, user, password))
    return tuple(hosts)


def _address(text: str, usual: int) -> tuple[str, int]:
    name, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon:
        name = text
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    elif ":" in name:
        raise ValueError
    if not name:
        raise _Fault("a host is missing")
    if colon and not (port.isdecimal() and 0 < int(port) <= _LAST_PORT):
        raise _Fault("a port is no number between 1 and 65535")
    return unquote(name), int(port) if colon else usual


def _login(text: str) -> tuple[str, str]:
    user, _, password = text.partition(":")
    return unquote(user), unquote(password)


def _read_options(parts: SplitResult, known: Iterable[str]) -> dict[str, str]:
    given = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    names = tuple(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f", did you mean `{near[0]}`" if near else ""
            raise _Fault(f"unknown option `{name}`{hint}" if name.isidentifier() else "unknown option")
    return given


def check_hostname(options: Mapping[str, str]) -> bool:
    """Return whether the server's certificate must name the host.

    :raises OptionError: when the option is neither true nor false
    """
    text = options.get("ssl_check_hostname", "true").lower()
    if text not in ("true", "false"):
        raise OptionError(f"option `ssl_check_hostname` is `{text}`, expected true or false")
    return text == "true"


def _no_password() -> str:
    """Replaces OpenSSL's question on the terminal; an encrypted key cannot be used."""
    return ""


def _reason(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()
