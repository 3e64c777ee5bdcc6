"""The request contract: a filter that accompanies whole requests.

For each object request the host calls the request filters on it for a :class:`Visit`, each one after the filters before
it let the request pass, and then, in this order:

1. ``request()`` first of all; it may change ``call.headers`` or answer itself.
2. ``body_in()`` for a PUT: a stream that the plain request body goes through.
3. ``response(reply)`` once status and headers of the answer are known; it may change them.
4. ``body_out(reply)``: a stream that the plain answer goes through.
5. ``end(complete)`` exactly once, last, in every case, also after a fault or a broken connection.

If a condition of the policy depends on the size, type or tags of the stored object, which the request does not have,
``wait()`` is called in the place of ``request()`` of a filter with ``info.on_answer``.  ``response`` and ``body_out``
follow when the answer shows that the condition holds, else ``end(False)``.

Requests pass the filters in stage order (lowest next to the client), answers in reverse.  When one answers in
``request``, the filters behind it and Swift are not called, and the answer passes those before it.  A visit sees the
plain object, as the client does: filters that change stored bytes run behind it, and read-time filters run on its
output.

Failures: a :class:`~sluice_filters.api.FilterError` in 1 to 4 refuses the request with 503 and the reason (a body in
transfer is cut off), any other exception does the same and is logged with its trace; in ``end`` both are only logged.
A visit may wait (it runs in the request's own green thread and may use :meth:`Call.send`), but not compute for long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sluice_core.describe import Scalar
from sluice_filters.stream import Stream


class Headers(dict[str, str]):
    """Header fields by name in any case; names are kept in Title-Case."""

    def __init__(self, values: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        pairs = values.items() if isinstance(values, Mapping) else values
        super().__init__({name.title(): value for name, value in pairs})

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name.title(), value)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.title())

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name.title())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.title())

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value, or ``default``."""
        return super().get(name.title(), default)

    def pop(self, name: str, default: Any = None) -> Any:
        """Remove a field; return its value, or ``default``."""
        return super().pop(name.title(), default)


@dataclass(slots=True)
class Reply:
    """An answer: ``status`` like ``200 OK``; ``body`` is iterated once and closed if it has ``close``."""

    status: str
    headers: Headers = field(default_factory=Headers)
    body: Iterable[bytes] = ()

    @property
    def code(self) -> int:
        """The status as a number."""
        return int(self.status[:3])


class Sender(Protocol):
    """Sends requests of a visit."""

    def __call__(
        self,
        method: str,
        path: tuple[str, str, str] | tuple[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Iterable[bytes] | None = None,
        query: str = "",
        stored: bool = False,
    ) -> Reply: ...


@dataclass(slots=True)
class Call:
    """One request.

    ``place`` is ``proxy`` or ``storage_node``.  ``headers`` are those of the request, and may be changed in
    ``request()``; system metadata and backend headers are not among them, and text beyond ASCII is encoded as in WSGI
    (UTF-8 read as latin-1).  ``size`` is the announced length of a PUT's body.  ``authorize()`` lets Swift check
    whether the client may send the request (with the container's ACL), for a visit that answers itself: None when it
    may, else the refusal to return.  ``send`` sends a separate request, without authorization, by default for the same
    object; the path is ``(account, container[, object])``.  It passes the filters behind this one, or with ``stored``
    accesses the stored form, system metadata included.  ``environ`` is the host's own (WSGI), for other values.
    ``protected`` is true when a protective filter (encryption) applies to the stored object, so that no plain copy may
    be kept elsewhere: for a PUT from the start, by the policies, for other requests from ``response`` on, by the
    object.  ``decided`` is False when only the answer shows whether the policy applies to the object
    (:meth:`Visit.wait`).
    """

    place: str
    method: str
    account: str
    container: str
    object: str
    read_headers: Callable[[], Headers]
    query: str
    size: int | None
    content_type: str | None
    authorize: Callable[[], Reply | None]
    send: Sender
    environ: dict[str, Any]
    protected: bool = False
    decided: bool = True

    @property
    def headers(self) -> Headers:
        """The same object each time; read at the first use, since most visits do not need it."""
        return self.read_headers()


class Visit:
    """The base of visits, each of which accompanies one request; does nothing."""

    def request(self) -> Reply | None:
        """Called first; a returned reply is the answer to the client."""
        return None

    def wait(self) -> None:
        """Called in the place of :meth:`request` while it is not known whether the policy applies; must not answer."""

    def body_in(self) -> Stream | None:
        """Return the stream for the plain body of a PUT; only a filter with ``info.changes_content`` may change it."""
        return None

    def response(self, reply: Reply) -> Reply:
        """Return the answer, changed or not; a visit that replaces it closes the body of the old one."""
        return reply

    def body_out(self, reply: Reply) -> Stream | None:
        """Return the stream for the plain answer of a GET (whole or a range: see ``reply``); not called for errors and
        HEAD.
        """
        return None

    def end(self, complete: bool) -> None:
        """Called at the end of the request; ``complete`` is true when both bodies were transferred completely."""


class ObjectCache(Protocol):
    """The cache of whole objects that a host provides for the filter ``caching``."""

    def visit(self, call: Call, params: Mapping[str, Scalar | None]) -> Visit | None:
        """Return the visit that caches ``call``; ``params`` are those of
        :class:`~sluice_filters.requests.caching.Caching`.
        """

    def prefetch(self, call: Call, params: Mapping[str, Scalar | None]) -> Visit | None:
        """Return a visit that reads ahead of ``call``; ``params`` are those of
        :class:`~sluice_filters.requests.prefetch.Prefetch`.
        """
