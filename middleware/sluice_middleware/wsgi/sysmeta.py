"""Contract: every system metadata header that Sluice writes on objects, and its backend headers.

The headers ``X-Object-Sysmeta-Sluice-*`` and ``X-Object-Transient-Sysmeta-Sluice-*`` below are all there are.  They are
removed from every response, and from every request that Sluice does not make.

``X-Object-Sysmeta-Sluice-Chain``
    JSON list, one entry per filter that changed the bytes, in running order:
    ``{"f": keyword, "v": filter version, "r": the filter's record}``.  Its presence means that the
    stored bytes are not those that the client sent.  At most about 2 KB (ext4 has 4 KB for all attributes).
``X-Object-Sysmeta-Sluice-Etag``
        MD5 of the bytes that the client sent, in hex; named in ``X-Backend-Etag-Is-At`` so that the object
        server answers If-Match and If-None-Match for the plain object.

``X-Object-Sysmeta-Sluice-Node``
    The filters that storage nodes run on this object inside their disk files: JSON list,
    ``{"f": keyword, "v": filter version, "p": parameters}`` in running order.  It holds for every replica, fragment and
        later copy of the object (SSYNC, reconstructor).  How one file is stored is recorded only in that file
        (``diskfile.stored_metadata``).

``X-Object-Sysmeta-Sluice-Motif``
        The object's motifs and the sources of its bytes (``sluice_motifs.storage.records.Record``), at most 2 KB.
``X-Object-Sysmeta-Sluice-Contracted``
        JSON ``{"v": 1, "s": plain size}``.  Its presence means that the object is stored without bytes, and that its
        motifs make them; ``-Etag`` above is the MD5 of these.
``X-Object-Sysmeta-Sluice-Made``
        A timestamp with an offset: when a motif made new content of the object, and the offset under which that was
        stored first.  The data file keeps the time of the client's upload before it, so that an upload that began since
        wins; this is the time that clients see, and the version of the content.  Storing the same bytes again keeps it.
``X-Object-Transient-Sysmeta-Sluice-Motif``
        A record as above that was attached after the object was written, behind the timestamp of the data file on
        which it was written, a slash, the plain ETag and a space.  A POST replaces it, so the proxy adds it again; it
        may be stored on a newer file, for which it does not hold (``stored_object.StoredObject.motif_record``).
``X-Object-Sysmeta-Sluice-Voters``
        JSON list of ``[device, incarnation]``: who votes about the object (``sluice_objects.protocol.voters``).  Its
        presence means that a home stored the object: what it stores is one state of a sequence, plain ones included.
``X-Object-Sysmeta-Sluice-Class``
        The kind of such a state (``sluice_objects.state.records``), and the class of a typed one behind a slash:
        ``typed/counter``, ``plain``, ``deleted``.  Object servers do not read it.
``X-Object-Sysmeta-Sluice-Copied``
        Never stored: on the response to the GET of a COPY, JSON that names the copied object with motifs.

Some backend headers are sent between processes of Sluice; gatekeeper removes them from requests of clients:

``X-Backend-Sluice-Refused``
        Why a storage node refused an object, or cannot return it.  Its response is :data:`REFUSED_STATUS`, with the
        reason in this header and in the body; never 5xx: Swift would suppress the device for all objects.
        The proxy middleware turns every response with that status into a 503 with the reason.

        * PUT: *after* the body, which is dropped.  (A 409 before the body makes Swift's proxy answer 202, though
          no object was stored, even when one replica of three refuses.)  When most replicas refuse, Swift's proxy
          forwards the status with its text and the body, not the header; when fewer do the PUT succeeds, and
          replication stores the others as soon as it can.  With erasure coding it answers 503 itself, without the
          reason.
        * GET: before the body; Swift's proxy tries the other nodes, and forwards status, header and body when none
          has a better response.  HEAD is never refused.
        * POST and DELETE: where the device has a home's promise or state of the object; so is a PUT then.

``X-Backend-Sluice-Read``
        On a GET: the read-time filters that the storage node shall run, JSON
        ``{"steps": [{"f": keyword, "v": filter version, "p": parameters}, ...], "a": {header: wish},
        "range": the Range header or null}``, steps in running order on GET.  A node that ran them sends
        ``done`` in this header of its response, which then has no Content-Length, ETag and Content-Range; without it
        the response is unchanged and the proxy runs them.  A request whose Range is not the named one is a
        proxy server resuming an interrupted response: the node refuses it with 409, since that is impossible.

``X-Backend-Sluice-Home``
    On a PUT or DELETE: a home stores the state (or deletion) with the stamp ``X-Timestamp``; its address.  On a 409:
    the address of the home that has a promise, maybe empty.
``X-Backend-Sluice-Incarnation``
    On every response to such a request that is the answer of a voter: its incarnation.  A stock object server does
    not send it: what it says is no vote.
``X-Backend-Sluice-Stored``
    On the response, whatever its status: the state with this stamp is stored, and the voter recorded that.
``X-Backend-Sluice-Promised``
    On a 409: the ballot that must be exceeded.

Besides these there are Swift's own ``X-Object-Sysmeta-Container-Update-Override-Size`` and ``-Etag``,
which keep container listings and byte counts plain.  They are removed from the responses of
transformed objects, since a copy would store them with data that they do not describe.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sluice_core.errors import DecodeError

CHAIN: Final = "X-Object-Sysmeta-Sluice-Chain"
ETAG: Final = "X-Object-Sysmeta-Sluice-Etag"
NODE: Final = "X-Object-Sysmeta-Sluice-Node"
MOTIF: Final = "X-Object-Sysmeta-Sluice-Motif"
#: Where an object was stored again: the timestamp of the data file for which :data:`MOTIF` was written, a slash, and
#: that of the newest metadata that were read before.
MOTIF_WRITTEN: Final = "X-Object-Sysmeta-Sluice-Motif-Written"
MADE: Final = "X-Object-Sysmeta-Sluice-Made"
CONTRACTED: Final = "X-Object-Sysmeta-Sluice-Contracted"
POSTED_MOTIF: Final = "X-Object-Transient-Sysmeta-Sluice-Motif"
COPIED: Final = "X-Object-Sysmeta-Sluice-Copied"
VOTERS: Final = "X-Object-Sysmeta-Sluice-Voters"
CLASS: Final = "X-Object-Sysmeta-Sluice-Class"
REFUSED: Final = "X-Backend-Sluice-Refused"
HOME: Final = "X-Backend-Sluice-Home"
INCARNATION: Final = "X-Backend-Sluice-Incarnation"
STATE_STORED: Final = "X-Backend-Sluice-Stored"
PROMISED: Final = "X-Backend-Sluice-Promised"
#: On the response to a HEAD, when the object may be made again before a read; `unknown` when that cannot be checked.
STALE: Final = "X-Sluice-Stale"
#: In the environment of a request for an object with motifs: it may change with other objects, and must not be cached.
WITH_MOTIFS: Final = "sluice.motifs"
#: Names of headers in the environment of a request.
NODE_ENV: Final = "HTTP_X_OBJECT_SYSMETA_SLUICE_NODE"
MOTIF_ENV: Final = "HTTP_X_OBJECT_SYSMETA_SLUICE_MOTIF"
MADE_ENV: Final = "HTTP_X_OBJECT_SYSMETA_SLUICE_MADE"
CONTRACTED_ENV: Final = "HTTP_X_OBJECT_SYSMETA_SLUICE_CONTRACTED"
ETAG_ENV: Final = "HTTP_X_OBJECT_SYSMETA_SLUICE_ETAG"
POSTED_MOTIF_ENV: Final = "HTTP_X_OBJECT_TRANSIENT_SYSMETA_SLUICE_MOTIF"
COPIED_ENV: Final = "HTTP_X_OBJECT_SYSMETA_SLUICE_COPIED"
#: Lower-case name, in a container's system metadata, of the Unix time since which its objects are sources of others.
SOURCES_MARK: Final = "sluice-motif-sources"
READ_ENV: Final = "HTTP_X_BACKEND_SLUICE_READ"
VOTERS_ENV: Final = "HTTP_X_OBJECT_SYSMETA_SLUICE_VOTERS"
HOME_ENV: Final = "HTTP_X_BACKEND_SLUICE_HOME"
REFUSED_ENV: Final = "HTTP_X_BACKEND_SLUICE_REFUSED"
REFUSED_STATUS: Final = "409 Refused by Sluice"
READ: Final = "X-Backend-Sluice-Read"
PREFIX: Final = "x-object-sysmeta-sluice-"
POSTED_PREFIX: Final = "x-object-transient-sysmeta-sluice-"
OVERRIDE_PREFIX: Final = "x-object-sysmeta-container-update-override-"

_CHAIN_FOLDED: Final = CHAIN.lower()
_NODE_FOLDED: Final = NODE.lower()
_LENGTHS: Final = frozenset(map(len, (CHAIN, NODE, MOTIF, POSTED_MOTIF)))
_MOTIFS_FOLDED: Final = (MOTIF.lower(), POSTED_MOTIF.lower())
_OF_MOTIFS: Final = frozenset((*_MOTIFS_FOLDED, MADE.lower()))
_LENGTH_OF_LENGTH: Final = len("content-length")
_LONGEST_REASON: Final = 1000
_ENV_PREFIXES: Final = ("HTTP_X_OBJECT_SYSMETA_SLUICE_", "HTTP_X_OBJECT_TRANSIENT_SYSMETA_SLUICE_")

Headers = list[tuple[str, str]]
Records = Sequence[dict[str, Any]]


def encode_chain(records: Sequence[Mapping[str, Any]]) -> str:
    """Header value for ``records``."""
    return json.dumps(list(records), separators=(",", ":"), sort_keys=True)


def decode_chain(value: str) -> tuple[dict[str, Any], ...]:
    """The records in a header value.

    :raises DecodeError: for a value that ``encode_chain`` does not write
    """
    try:
        records = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"object metadata `{CHAIN}` is not JSON", value.encode()) from error
    well_formed = isinstance(records, list) and all(
        isinstance(one, dict) and isinstance(one.get("f"), str) and isinstance(one.get("r"), dict) for one in records
    )
    if not well_formed or not records:
        raise DecodeError(f"object metadata `{CHAIN}` names no filters", value.encode())
    return tuple(records)


class Marks(NamedTuple):
    """How an object is stored, by the headers of a response: values of the chain and the node header, and
    whether it has motifs.
    """

    chain: str | None = None
    node: str | None = None
    motifs: bool = False


_PLAIN: Final = Marks()


def find_marks(headers: Iterable[tuple[str, str]]) -> Marks:
    """The marks of a response; called on every GET, hence the length test first."""
    marks = _PLAIN
    for name, value in headers:
        if len(name) in _LENGTHS:
            folded = name.lower()
            if folded == _CHAIN_FOLDED:
                marks = marks._replace(chain=value)
            elif folded == _NODE_FOLDED:
                marks = marks._replace(node=value)
            elif folded in _MOTIFS_FOLDED:
                marks = marks._replace(motifs=True)
    return marks


def encode_contracted(size: int) -> str:
    """Header value for an object that had ``size`` plain bytes."""
    return json.dumps({"v": 1, "s": size}, separators=(",", ":"))


def contracted_size(headers: Iterable[tuple[str, str]]) -> int:
    """Plain bytes that a contracted object had.

    :raises DecodeError: when its header is not one that :func:`encode_contracted` writes
    """
    value = find_header(headers, CONTRACTED) or ""
    try:
        match json.loads(value):
            case {"v": 1, "s": int(size)} if size >= 0:
                return size
    except (ValueError, RecursionError):
        pass
    raise DecodeError(f"object metadata `{CONTRACTED}` is damaged, or of another version", value.encode())


def find_header(headers: Iterable[tuple[str, str]], wanted: str) -> str | None:
    """Value of the header ``wanted`` (any case) or None."""
    folded = wanted.lower()
    return next((value for name, value in headers if name.lower() == folded), None)


def find_content_length(headers: Iterable[tuple[str, str]]) -> int | None:
    """Content-Length of a response, None without one; called on every GET, as above."""
    for name, value in headers:
        if len(name) == _LENGTH_OF_LENGTH and name.lower() == "content-length":
            return int(value) if value.isdecimal() else None
    return None


def strip_headers(headers: Headers) -> Headers:
    """Headers without the names that only this middleware may write."""
    return [(name, value) for name, value in headers if not name.lower().startswith((PREFIX, POSTED_PREFIX))]


def filter_keywords(*values: str | None) -> tuple[str, ...]:
    """The filters that the values of chain and node headers name; none for values that cannot be read."""
    keywords: list[str] = []
    for value in values:
        if value is not None:
            try:
                keywords.extend(str(one["f"]) for one in json.loads(value))
            except (ValueError, TypeError, KeyError, RecursionError):
                keywords.append("")
    return tuple(keywords)


def strip_motifs(headers: Headers) -> Headers:
    """Headers without those of motifs."""
    return [(name, value) for name, value in headers if name.lower() not in _OF_MOTIFS]


def plain_headers(headers: Headers, size: int | None) -> Headers:
    """Headers of a transformed object's response as a client of the plain object sees them.

    ``size`` replaces Content-Length unless None.  The stored ETag becomes the plain one.
    """
    etag = find_header(headers, ETAG)
    kept = []
    for name, value in headers:
        folded = name.lower()
        if folded.startswith((PREFIX, POSTED_PREFIX, OVERRIDE_PREFIX)):
            continue
        if folded == "etag" and etag is not None:
            kept.append((name, f'"{etag}"' if value.startswith('"') else etag))
        elif folded == "content-length" and size is not None:
            kept.append((name, str(size)))
        else:
            kept.append((name, value))
    return kept


def reason_header(reason: Exception) -> str:
    """``reason`` as a value of :data:`REFUSED`: one line of ASCII, bounded."""
    return " ".join(str(reason).split()).encode("ascii", "backslashreplace")[:_LONGEST_REASON].decode("ascii")


def strip_request(env: dict[str, Any]) -> None:
    """Remove Sluice's headers from a request: only this middleware may write them.

    Gatekeeper removes those of clients; this is for middlewares to the left that copy system metadata
    from one object to another.
    """
    for name in [name for name in env if name.startswith(_ENV_PREFIXES)]:
        del env[name]
