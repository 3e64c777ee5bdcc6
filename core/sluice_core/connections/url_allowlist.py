"""The hosts that Sluice may call over HTTP at URLs that users register.

A user who registers a URL must not reach every host that Sluice can reach.  A listed *name* is called at global
addresses only; loopback, link-local, private and other special addresses must be listed themselves, as addresses or
networks.  The check applies to the address that the name resolves to.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from sluice_core.errors import CallerError

_name = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9])?", re.IGNORECASE)
#: The well-known prefix of NAT64 (RFC 6052): the IPv4 address is in the last 32 bits.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class BadUrl(CallerError):
    """A URL that cannot be called over HTTP, or may not be."""


def http_host(url: str) -> str:
    """Return the host of an HTTP or HTTPS URL without login and fragment; connects to nothing.

    :raises BadUrl: with the reason
    """
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadUrl(f"`{url.partition('?')[0]!a}` is no URL: expected printable ASCII, anything else percent-encoded")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadUrl(f"that is no URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise BadUrl(f"`{url.partition('?')[0]}` is no URL of a service, expected `http://` or `https://` and a host")
    if "@" in parts.netloc:
        raise BadUrl("the URL holds a user or a password, expected neither: all readers of the setting see it")
    if parts.fragment:
        raise BadUrl("the URL has a fragment, expected none")
    return host


class UrlAllowlist:
    """The hosts that may be called; ``allowed`` are names (``a.example``, ``*.example``), addresses and networks."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._names: set[str] = set()
        self._networks: list[Network] = []
        for word in filter(None, map(str.strip, allowed)):
            try:
                self._networks.append(ipaddress.ip_network(word, strict=False))
            except ValueError:
                if not _name.fullmatch(word):
                    raise BadUrl(f"`{word}` is no host, expected a name, `*.name`, an address or a network") from None
                self._names.add(word.lower())

    @classmethod
    def from_option(cls, text: str) -> UrlAllowlist:
        """Parse a configuration's comma-separated list."""
        return cls(text.split(","))

    def admits(self, host: str) -> bool:
        """Whether ``host`` may be called at some address; an unlisted name may resolve to a listed address."""
        try:
            return self._listed(ipaddress.ip_address(host))
        except ValueError:
            return bool(self._networks) or self._named(host)

    def refusal(self, host: str, address: str) -> str:
        """The reason why ``host`` may not be called at ``address``; empty when it may."""
        called = ipaddress.ip_address(address.partition("%")[0])
        if self._listed(called):
            return ""
        if not self._named(host):
            return f"host `{host}` is not among those that may be called"
        special = [one for one in _meant(called) if not one.is_global or one.is_multicast]
        return f"host `{host}` is at `{special[0]}`, which is no global address and not listed" if special else ""

    def choose(self, host: str, addresses: Iterable[str]) -> list[str]:
        """Return the ``addresses`` at which ``host`` may be called; connect to these without another resolution.

        :raises BadUrl: when ``host`` may be called at none of them
        """
        refusals = {address: self.refusal(host, address) for address in dict.fromkeys(addresses)}
        allowed = [address for address, refusal in refusals.items() if not refusal]
        if not allowed:
            raise BadUrl(next(iter(refusals.values()), f"host `{host}` has no address"))
        return allowed

    def check(self, host: str) -> None:
        """
        :raises BadUrl: when ``host`` may not be called, whatever its addresses are
        """
        if not self.admits(host):
            raise BadUrl(f"host `{host}` is not among those that may be called")

    def _named(self, host: str) -> bool:
        parts = host.lower().rstrip(".").split(".")
        names = (".".join(parts), *("*." + ".".join(parts[at:]) for at in range(1, len(parts))))
        return not self._names.isdisjoint(names)

    def _listed(self, address: Address) -> bool:
        meant = _meant(address)[-1]
        return any(meant in network for network in self._networks if network.version == meant.version)


def _meant(address: Address) -> list[Address]:
    """Return ``address`` and the addresses that it stands for: IPv4 embedded in IPv6."""
    meant: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        teredo = address.teredo
        inner = address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            meant.append(inner)
    return meant
