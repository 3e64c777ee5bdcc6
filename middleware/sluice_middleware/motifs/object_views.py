"""Objects as items of the motif runtime: ``account/container/object``, described by the response to a HEAD."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sluice_core.errors import DecodeError, PeerError
from sluice_middleware.swift import green
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi.internal_client import make_environment
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.response import App, UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject
from sluice_motifs.storage.records import ItemView, Plain, Record

#: Headers of objects whose bytes must stay, and why.
_PINNED: Final = {
    "x-static-large-object": "it is the manifest of a large object",
    "x-object-manifest": "it is the manifest of a large object",
    "x-object-sysmeta-symlink-target": "it is a link",
}
#: Environment key of a HEAD for which no client waits.
UNHURRIED: Final = "sluice.unhurried"
#: HEADs sent at a time for the sources of one object.
LOOKS_AT_ONCE: Final = 8
_ENCRYPTED: Final = ("x-object-sysmeta-crypto-", "x-object-transient-sysmeta-crypto-")


def item_name(target: Target) -> str:
    """The name of an object as an item."""
    return "/".join(target)


def target_of(name: str) -> Target | None:
    """The object of a name; None for a name that no object can have."""
    parts = name.split("/", 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and all(parts) else None


def view_of(name: str, stored: StoredObject, pinned: str = "") -> ItemView:
    """The item that a response describes.

    :param pinned: why its bytes must stay, if the response does not say so
    :raises DecodeError: when its record is damaged
    """
    plain = Plain(stored.version, stored.size, stored.etag)
    record = Record.decode(stored.motif_record) if stored.motif_record else Record()
    return ItemView(name, plain, record, stored.contracted, pinned or _pinned(stored), stored)


class ObjectViews:
    """Views of objects, each from a HEAD of the newest copy.

    :param app: Swift's proxy application below gatekeeper, authorization and Sluice
    :param cache: Swift's memcache, if ``app`` has none
    :param unhurried: whether no client waits for the views
    """

    def __init__(self, app: App, cache: Any = None, unhurried: bool = False) -> None:
        self.app = app
        self._unhurried = unhurried
        self._cache = cache

    def view(self, name: str) -> ItemView | None:
        """The item; None if the object does not exist.

        :raises PeerError: when Swift's response does not tell
        """
        stored = self.stored(name)
        try:
            return None if stored is None else view_of(name, stored)
        except DecodeError as error:
            raise PeerError(f"the metadata of `{name}` cannot be read: {error}") from error

    def view_all(self, names: Sequence[str]) -> Sequence[ItemView | None]:
        """The views of several items, in their order."""
        return view_concurrently(self.view, names)

    def stored(self, name: str) -> StoredObject | None:
        """The object as it is stored; None if it does not exist.

        :raises PeerError: when Swift's response does not tell
        """
        target = target_of(name)
        if target is None:
            return None
        env = make_environment("HEAD", *target)
        env["HTTP_X_NEWEST"] = "true"
        if self._unhurried:
            env[UNHURRIED] = True
        if self._cache is not None:
            env["swift.cache"] = self._cache
        answer = UpstreamResponse(self.app, env)
        close_if_possible(answer.body)
        if answer.code == 404:
            return None
        if answer.code != 200:
            raise PeerError(f"swift answered `{answer.status}` to a HEAD of `{name}`")
        try:
            return StoredObject(answer.headers)
        except DecodeError as error:
            raise PeerError(f"the metadata of `{name}` cannot be read: {error}") from error


def view_concurrently(look: Callable[[str], ItemView | None], names: Sequence[str]) -> Sequence[ItemView | None]:
    """The result of ``look`` for each object; several run concurrently."""
    if len(names) < 2:
        return [look(name) for name in names]
    return green.map_concurrently(look, names, LOOKS_AT_ONCE)


def _pinned(stored: StoredObject) -> str:
    for name, _ in stored.headers:
        folded = name.lower()
        if folded in _PINNED:
            return _PINNED[folded]
        if folded.startswith(_ENCRYPTED):
            return "Swift's own encryption stores it"
    return ""
