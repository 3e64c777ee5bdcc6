"""The bytes of objects, for templates: those of a source through the front door, and an object's own below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from sluice_core.errors import NotFound, PeerError, SluiceError
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.motifs.object_views import ObjectViews, target_of, view_of
from sluice_middleware.motifs.rights import may_read
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.swift.proxy_api import close_if_possible
from sluice_middleware.wsgi.internal_client import make_environment
from sluice_middleware.wsgi.response import UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject
from sluice_motifs.api import ExpansionError, SourceGone
from sluice_motifs.expansion.opening import Opened
from sluice_motifs.storage.records import ItemView
from sluice_motifs_swift.objects.containers import Containers, retained_name

#: How often a source is opened that is contracted again before its bytes are read.
_TRIES: Final = 4

#: Opens an item for an expansion that waits for it (``Runtime.notify_open``).
Open = Callable[[str, tuple[str, ...]], Opened]


class ObjectReads:
    """:param handler: of Swift's proxy application below gatekeeper and authorization"""

    def __init__(self, handler: ObjectHandler, containers: Containers, limiter: BandwidthLimiter) -> None:
        self._handler = handler
        self._views = ObjectViews(handler.app)
        self._limiter = limiter
        self._containers = containers
        #: Set when there is a runtime, which uses this object.
        self.open: Open | None = None

    def read(self, name: str, reader: str, chain: tuple[str, ...], version: str = "") -> Iterator[bytes]:
        """As ``Shim.read``."""
        target = target_of(name)
        if target is None:
            raise SourceGone(name)
        if not may_read(reader, target[0], partial(self._containers.read_acl, *target[:2])):
            raise ExpansionError(f"`{reader}`, who attached the motif, may not read `{name}`")
        try:
            answer, view = self._get(name)
        except SourceGone:
            if not version:
                raise
            yield from self.stored_bytes(retained_name(name, version))
            return
        if version and view.plain.version != version:
            close_if_possible(answer.body)
            yield from self.stored_bytes(retained_name(name, version))
            return
        if not view.record.motifs:  # most sources have none
            yield from self._pieces(answer, view)
            return
        close_if_possible(answer.body)
        yield from self._opened(name, chain)

    def _opened(self, name: str, chain: tuple[str, ...]) -> Iterator[bytes]:
        """The bytes of an object with motifs."""
        if self.open is None:
            raise ExpansionError("there is no runtime that opens objects")
        for _ in range(_TRIES):
            try:
                opened = self.open(name, chain)
            except NotFound as error:
                raise SourceGone(name) from error
            try:
                if opened.expansion is not None:
                    yield from opened.read()
                    return
                answer, view = self._get(name)
                if not view.contracted:
                    yield from self._pieces(answer, view)
                    return
                close_if_possible(answer.body)
            finally:
                opened.close()
        raise ExpansionError(f"`{name}` is contracted again and again")

    def own_bytes(self, seen: ItemView) -> Iterator[bytes]:
        """As ``Shim.own_bytes``."""
        answer, view = self._get(seen.name)
        if view.contracted or view.plain != seen.plain:
            close_if_possible(answer.body)
            raise ExpansionError(f"`{seen.name}` has other bytes now")
        yield from self._pieces(answer, view)

    def stored_bytes(self, name: str) -> Iterator[bytes]:
        """The bytes of an object that is never contracted.

        :raises SourceGone: when the object does not exist
        """
        yield from self._pieces(*self._get(name))

    def _get(self, name: str) -> tuple[UpstreamResponse, ItemView]:
        """The response for the stored object.

        A GET of the newest copy would make all servers start to send theirs.
        """
        target = target_of(name)
        newest = self._views.stored(name)
        if target is None or newest is None:
            raise SourceGone(name)
        env = make_environment("GET", *target)
        answer = UpstreamResponse(self._handler.app, env)
        try:
            if answer.code != 200 or StoredObject(answer.headers) != newest:  # from an outdated server
                close_if_possible(answer.body)
                env = make_environment("GET", *target)
                env["HTTP_X_NEWEST"] = "true"
                answer = UpstreamResponse(self._handler.app, env)
            if answer.code == 404:
                raise SourceGone(name)
            if answer.code != 200:
                raise PeerError(f"swift answered `{answer.status}` to a GET of `{name}`")
            view = view_of(name, StoredObject(answer.headers))
            if view.pinned:
                raise ExpansionError(f"`{name}` cannot be read: {view.pinned}")
            if view.opaque.chain is not None:
                self._handler.decode(env, target, answer, view.opaque.chain)
            answer.body = self._limiter.throttle_download(env, target, answer, self._handler.lookup.candidates(target))
        except BaseException:
            close_if_possible(answer.body)
            raise
        return answer, view

    def _pieces(self, answer: UpstreamResponse, view: ItemView) -> Iterator[bytes]:
        try:
            yield from answer.body
        except SluiceError as error:
            raise ExpansionError(f"`{view.name}` cannot be read: {error}") from error
        finally:
            close_if_possible(answer.body)
