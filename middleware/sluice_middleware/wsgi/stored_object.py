"""A stored object as Swift's answer describes it, and the upload that stores it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_core.errors import PeerError
from sluice_core.rewrites.offsets import next_offset
from sluice_filters import chain
from sluice_middleware.swift.internal_api import Timestamp
from sluice_middleware.swift.proxy_api import header_to_environ_key
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import Env, Headers

_DATA_TIMESTAMP: Final = "X-Backend-Data-Timestamp"
_OVERRIDE_ETAG: Final = "x-object-sysmeta-container-update-override-etag"
_OVERRIDE_SIZE: Final = "x-object-sysmeta-container-update-override-size"
#: Headers of an answer that say nothing of the object, or that the PUT makes anew.
_NOT_CARRIED: Final = frozenset(
    (
        *("content-length", "content-range", "content-type", "etag", "last-modified", "x-timestamp"),
        *("date", "age", "server", "connection", "keep-alive", "transfer-encoding", "accept-ranges"),
        *("x-trans-id", "x-openstack-request-id"),
    )
)


class StoredObject:
    """An object as the headers of an answer describe it, which nobody changed."""

    def __init__(self, headers: Headers) -> None:
        """
        :raises SluiceError: when the metadata make no sense
        """
        self.headers = headers
        self.chain, node = sysmeta.find_chain_and_node(headers)
        self.records = () if self.chain is None else tuple(sysmeta.decode_chain(self.chain))
        self.node_steps = node
        plain = sysmeta.plain_headers(headers, self._plain_size()) if self.chain is not None else headers
        self.size = int(sysmeta.find_header(plain, "Content-Length") or 0)
        self.etag = (sysmeta.find_header(plain, "Etag") or "").strip('"')
        self.content_type = sysmeta.find_header(headers, "Content-Type")

    @property
    def is_plain(self) -> bool:
        """True when nothing has to be undone."""
        return self.chain is None and self.node_steps is None

    def _plain_size(self) -> int:
        return chain.plain_size(self.records)

    def next_timestamp(self) -> str:
        """The timestamp of the next attempt to replace these data.

        :raises PeerError: when the answer does not tell when they were written
        """
        value = sysmeta.find_header(self.headers, _DATA_TIMESTAMP)
        if not value:
            raise PeerError("an object server does not say when the data were written")
        stored = Timestamp(value)
        replaced: str = Timestamp(stored.timestamp, offset=next_offset(stored.offset)).internal
        return replaced

    def own_headers(self) -> Mapping[str, str]:
        """The headers that a PUT of this object carries, by their names in lower case."""
        return {
            name.lower(): value
            for name, value in self.headers
            if name.lower() not in _NOT_CARRIED
            and not name.lower().startswith((sysmeta.PREFIX, sysmeta.OVERRIDE_PREFIX, "x-backend-"))
        }


def describe_upload(env: Env, stored: StoredObject) -> None:
    """Make ``env`` the upload of the plain object."""
    for name, value in stored.own_headers().items():
        env[header_to_environ_key(name)] = value
    env["CONTENT_LENGTH"] = str(stored.size)
    if stored.content_type:
        env["CONTENT_TYPE"] = stored.content_type


def carry_listing_values(env: Env, stored: StoredObject) -> None:
    """Send what the container listing shows, where that is something else than the plain object's own values."""
    given = {name.lower(): value for name, value in stored.headers}
    own = {_OVERRIDE_ETAG: stored.etag, _OVERRIDE_SIZE: str(stored.size)}
    for name, plain in own.items():
        if name in given and given[name] != plain:
            env[header_to_environ_key(name)] = given[name]
