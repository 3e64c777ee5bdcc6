"""A stored object as Swift's response describes it, and the upload that stores it again at its own time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from sluice_core.errors import CallerError, DecodeError, PeerError
from sluice_filters import chain
from sluice_middleware.swift.internal_api import Timestamp
from sluice_middleware.swift.proxy_api import header_to_environ_key
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.response import Env, Headers
from sluice_motifs.storage.records import Record
from sluice_rewrites.offsets import NEW_CONTENT, next_offset

#: The shortest distance of two timestamps.
TICK: Final = 1e-5
log = logging.getLogger(__name__)

_DATA_TIMESTAMP: Final = "X-Backend-Data-Timestamp"
_TIMESTAMP: Final = "X-Backend-Timestamp"
_OVERRIDE_ETAG: Final = "x-object-sysmeta-container-update-override-etag"
_OVERRIDE_SIZE: Final = "x-object-sysmeta-container-update-override-size"
#: Header of a container update: when clients see the last change of the metadata.  It is not stored with the object:
#: the object server would send it again for each POST, whose time listings show then.
_LISTED_TIME: Final = "HTTP_X_BACKEND_CONTAINER_UPDATE_OVERRIDE_META_TIMESTAMP"
#: Headers of a response that do not describe the object, or that the PUT sets anew.
_NOT_CARRIED: Final = frozenset(
    (
        *("content-length", "content-range", "content-type", "etag", "last-modified", "x-timestamp"),
        *("date", "age", "server", "connection", "keep-alive", "transfer-encoding", "accept-ranges"),
        *("x-trans-id", "x-openstack-request-id"),
    )
)
#: Headers that describe how the data are stored, which the PUT decides.
_MADE_ANEW: Final = (sysmeta.PREFIX, sysmeta.POSTED_PREFIX, sysmeta.OVERRIDE_PREFIX, "x-backend-")


class StoredObject:
    """An object as the unchanged headers of a response describe it."""

    def __init__(self, headers: Headers) -> None:
        """
        :raises SluiceError: when the metadata are invalid
        """
        self.headers = headers
        self.chain, node, _ = sysmeta.find_marks(headers)
        self.records = () if self.chain is None else tuple(sysmeta.decode_chain(self.chain))
        self.node_steps = node
        #: Whether it has no bytes, and a motif makes them.
        self.contracted = sysmeta.find_header(headers, sysmeta.CONTRACTED) is not None
        #: Plain bytes; of a response that is not about the whole object, its Content-Length.
        self.size = int(sysmeta.find_header(headers, "Content-Length") or 0)
        plain = headers
        if self.contracted or self.chain is not None:
            self.size = sysmeta.contracted_size(headers) if self.contracted else chain.plain_size(self.records)
            plain = sysmeta.plain_headers(headers, self.size)
        self.etag = (sysmeta.find_header(plain, "Etag") or "").strip('"')
        #: When a motif made its new content, as ``sysmeta.MADE`` says; empty when the bytes are a client's.
        self.made = sysmeta.find_header(headers, sysmeta.MADE) or ""
        self.content_type = sysmeta.find_header(headers, "Content-Type")

    def __eq__(self, other: object) -> bool:
        """Whether both responses describe the same state of an object."""
        return isinstance(other, StoredObject) and self._state() == other._state()

    __hash__ = None  # type: ignore[assignment]  # nobody keeps them in a set

    def _state(self) -> tuple[object, ...]:
        timestamps = (self.timestamp, self._data_timestamp().internal)
        return (*timestamps, self.own_headers(), self.content_type, self.size, self.etag, self.chain, self.contracted)

    @property
    def is_plain(self) -> bool:
        """Whether the stored bytes need no decoding."""
        return self.chain is None and self.node_steps is None

    @property
    def version(self) -> str:
        """When a client wrote the data, or a motif made new content; storing the same bytes again keeps it.

        Both are of one length: records hold the versions of many objects.

        :raises PeerError: when the response does not tell
        """
        if self.made:
            made = Timestamp(self.made)
            return f"{made.raw:012x}{made.offset & 0xFFFF:04x}"
        written: str = self._data_timestamp().normal
        return written

    @property
    def data_timestamp(self) -> str:
        """The version with the offset of the last replacement of the bytes.

        :raises PeerError: when the response does not tell
        """
        stored: str = self._data_timestamp().internal
        return stored

    @property
    def timestamp(self) -> str:
        """When data or metadata were written last, with the offset."""
        return sysmeta.find_header(self.headers, _TIMESTAMP) or self._data_timestamp().internal

    @property
    def modified(self) -> float:
        """When clients see the last change, of bytes or metadata, as Unix time."""
        return max(float(Timestamp(one)) for one in (self.timestamp, self.made) if one)

    @property
    def motif_record(self) -> str:
        """The record of the object's motifs that holds for these data, as text; empty without one.

        A record that was posted names the data file on which it was written.  It holds for that file, and for others of
        the same time and bytes that have none, or an older one.  A record that was posted while another process read
        the object and stored it again holds beside the record that this process wrote.

        Swift's reconciler stores data and metadata as one file at the time of the last POST.  Then the record holds for
        the same bytes, unless the one that is kept was written after it.
        """
        return self._motif_record()[0]

    def _motif_record(self) -> tuple[str, str]:
        """``motif_record``, with the timestamp of the data file for which it was written, if that is known."""
        kept = sysmeta.find_header(self.headers, sysmeta.MOTIF) or ""
        written, _, read = (sysmeta.find_header(self.headers, sysmeta.MOTIF_WRITTEN) or "").partition("/")
        named, _, posted = (sysmeta.find_header(self.headers, sysmeta.POSTED_MOTIF) or "").partition(" ")
        if not posted:
            return kept, written  # most have none, and their time is not needed
        written_on, _, etag = named.partition("/")
        data, known = self._data_timestamp(), Timestamp(written_on)
        moved = known.normal != data.normal
        of_others = (moved or etag) and etag != self.etag
        if of_others or (moved and self.timestamp != data.internal):
            return kept, written  # other bytes were written while it was posted
        if not kept or known >= Timestamp(written or (0 if moved else data.internal)):
            return posted, known.internal
        if read and Timestamp(self.timestamp) > Timestamp(read):
            return _joined(kept, posted), written
        return kept, written

    def posted_motif(self, record: str) -> str:
        """The value of ``sysmeta.POSTED_MOTIF`` that attaches ``record`` to these data."""
        return f"{self._data_timestamp().internal}/{self.etag} {record}"

    def replace_by(self, env: Env, record_carried: bool = False, new_content: bool = False) -> None:
        """Give an upload the timestamp of the next attempt to replace these data.

        :param record_carried: whether its record of motifs is only copied.  A record posted meanwhile then replaces
            it; else both hold, since bytes may be removed because of this record
        :param new_content: whether its bytes differ from these
        :raises PeerError: when the response does not tell when they were written
        """
        env["HTTP_X_TIMESTAMP"] = _next(self._data_timestamp(), NEW_CONTENT if new_content else 1)
        made = self._made_now(Timestamp(env["HTTP_X_TIMESTAMP"]).offset) if new_content else self.made
        if made:
            env[sysmeta.MADE_ENV] = made
            env[_LISTED_TIME] = Timestamp(made).normal
        if sysmeta.MOTIF_ENV in env:
            carried = self._motif_record()[1] or self._data_timestamp().internal
            written = carried if record_carried else env["HTTP_X_TIMESTAMP"]
            env[header_to_environ_key(sysmeta.MOTIF_WRITTEN)] = f"{written}/{self.timestamp}"

    def _made_now(self, offset: int) -> str:
        """``made`` of new content: later than all times that clients were shown, and of no other content."""
        now = max(float(Timestamp.now()), self.modified + TICK)
        made: str = Timestamp(now, offset=offset).internal
        return made

    def next_post_timestamp(self) -> str:
        """The timestamp of the next attempt to replace the metadata alone."""
        return _next(Timestamp(self.timestamp))

    def own_headers(self) -> Mapping[str, str]:
        """The headers that a PUT of this object carries, by their names in lower case."""
        return {
            name.lower(): value
            for name, value in self.headers
            if name.lower() not in _NOT_CARRIED and not name.lower().startswith(_MADE_ANEW)
        }

    def _data_timestamp(self) -> Timestamp:
        value = sysmeta.find_header(self.headers, _DATA_TIMESTAMP)
        if not value:
            raise PeerError("an object server does not say when the data were written")
        return Timestamp(value)


def _next(stored: Timestamp, multiples: int = 1) -> str:
    replaced: str = Timestamp(stored.timestamp, offset=next_offset(stored.offset, multiples=multiples)).internal
    return replaced


def _joined(kept: str, posted: str) -> str:
    try:
        return Record.decode(kept).joined(Record.decode(posted)).encode()
    except (DecodeError, CallerError) as error:  # one is damaged, or both together are too long
        log.warning("a motif that was attached while its object was stored again is lost: %s", error)
        return kept


def describe_upload(env: Env, stored: StoredObject) -> None:
    """Turn ``env`` into the upload of the plain object."""
    for name, value in stored.own_headers().items():
        env[header_to_environ_key(name)] = value
    if stored.motif_record:
        env[header_to_environ_key(sysmeta.MOTIF)] = stored.motif_record
    env["CONTENT_LENGTH"] = str(stored.size)
    if stored.content_type:
        env["CONTENT_TYPE"] = stored.content_type


def carry_listing_values(env: Env, stored: StoredObject, always: bool = False) -> None:
    """Send the values of the container listing, where they differ from those of the plain object.

    :param always: send them in any case: the stored object has other values
    """
    given = {name.lower(): value for name, value in stored.headers}
    own = {_OVERRIDE_ETAG: stored.etag, _OVERRIDE_SIZE: str(stored.size)}
    for name, plain in own.items():
        value = given.get(name, plain)
        if always or value != plain:
            env[header_to_environ_key(name)] = value
