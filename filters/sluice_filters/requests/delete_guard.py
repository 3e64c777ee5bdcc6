"""The filter that keeps deleted objects in a bin for a time.

Before a DELETE continues, the object is copied to ``<bin>/<container>/<object>/<timestamp>`` in the same account, in
its stored form: transformed bytes stay transformed and keep their records, manifests and links are copied as such.  So
a copy costs the stored bytes, and is restored by a server-side copy.  Large objects are kept as manifests; their
segments are objects, and are kept when they are deleted themselves.  If the copy fails, the object is not deleted.  The
copy expires by Swift's object expirer; in the bin itself DELETE deletes.

Exactly the copied state is deleted: the deletion is dated right after it.  An object that is written meanwhile is newer
and stays, or, if it was there before the deletion, Swift refuses (409) and the guard copies and deletes it in turn.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Final

from sluice_core.describe import FILTER, ActionInfo, Parameter, Scalar
from sluice_filters.api import BadParameter, Filter, FilterError
from sluice_filters.visits import Call, Headers, Reply, Visit

#: Headers of a stored object that are written back, besides those with one of the prefixes.
_KEPT: Final = (
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "Content-Disposition",
    "Content-Language",
    "Cache-Control",
    "Expires",
    "X-Robots-Tag",
    "X-Object-Manifest",
    "X-Static-Large-Object",
    "Etag",
)
_PREFIXES: Final = ("X-Object-Meta-", "X-Object-Sysmeta-", "X-Object-Transient-Sysmeta-")
#: Swift's own headers of fragments, which it sets again for the copy.
_FRAGMENTS: Final = "X-Object-Sysmeta-Ec-"
_SLO_SIZE: Final = "X-Object-Sysmeta-Slo-Size"
#: Longest name of an object, in bytes.
_LONGEST: Final = 1024
_WEEK: Final = 7 * 86400.0
#: Number of attempts for an object that is written meanwhile.
_TRIES: Final = 5
_MOMENT: Final = "X-Timestamp"
_STEP: Final = Decimal("0.00001")
_CONFLICT: Final = 409


class DeleteGuard(Filter):
    """Copies an object to a bin before it is deleted."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="delete_guard",
        kind=FILTER,
        help="keep deleted objects in a bin for a time",
        parameters=(
            Parameter("keep", "duration", "how long a deleted object is kept", default=_WEEK, minimum=1.0),
            Parameter("bin", "str", "container of the same account that deleted objects go to", default="deleted"),
        ),
        stage=60,
        on_put=False,
        on_request=True,
        methods=("DELETE",),
    )

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        self.bin = str(self.params["bin"])
        if not self.bin or "/" in self.bin or len(self.bin.encode()) > 256:
            raise BadParameter(f"`bin` is `{self.bin}`, expected the name of a container")
        self.keep = int(self.params["keep"] or _WEEK)

    def visit(self, call: Call) -> Visit | None:
        if call.method != "DELETE" or call.container == self.bin or "X-If-Delete-At" in call.headers:
            return None  # the last case is the expirer, which deletes expired objects
        return _Guard(self, call)


class _Guard(Visit):
    def __init__(self, guard: DeleteGuard, call: Call) -> None:
        self._guard = guard
        self._call = call
        self._dated = False

    def request(self) -> Reply | None:
        """Copy the object, unless the request will fail anyway, which Swift reports itself."""
        denial = self._call.authorize()
        if denial is not None:
            _close(denial)
            return None
        moment = self._kept()
        if moment and _MOMENT not in self._call.headers:  # otherwise another cluster dates it: container sync
            self._call.headers[_MOMENT] = moment
            self._dated = True
        return None

    def response(self, reply: Reply) -> Reply:
        """Repeat both steps when a newer object was there."""
        for _ in range(_TRIES):
            if reply.code != _CONFLICT or not self._dated:
                break
            _close(reply)
            moment = self._kept()  # empty when another client deleted it: Swift reports that
            reply = self._call.send("DELETE", headers={_MOMENT: moment} if moment else {}, stored=True)
        return reply

    def _kept(self) -> str:
        """Copy the object; return the moment right after its timestamp, or an empty text when there is none.

        :raises FilterError: when there is an object and it cannot be copied
        """
        moment = self._keep()
        if moment is None:
            self._make_bin()
            moment = self._keep()
        if moment is None:
            raise FilterError(f"object is not deleted, since container `{self._guard.bin}` is not there")
        return moment

    def _keep(self) -> str | None:
        """As :meth:`_kept`; return None when there is no bin."""
        call = self._call
        stored = call.send("GET", headers={"X-Newest": "true"}, stored=True)
        if stored.code != 200:
            _close(stored)
            if stored.code == 404:
                return ""
            raise FilterError(f"object is not deleted, since it cannot be read for keeping: {stored.status}")
        name = make_bin_name(call.container, call.object, time.time())
        kept = call.send(
            "PUT",
            (call.account, self._guard.bin, name),
            headers={**copy_headers(stored.headers), "X-Delete-After": str(self._guard.keep)},
            body=stored.body,
            stored=True,
        )
        _close(kept)
        if kept.code not in (201, 404):
            raise FilterError(f"object is not deleted, since it cannot be kept: {kept.status}")
        return _next_timestamp(stored.headers.get(_MOMENT, "")) if kept.code == 201 else None

    def _make_bin(self) -> None:
        made = self._call.send("PUT", (self._call.account, self._guard.bin))
        _close(made)
        if made.code not in (201, 202):
            raise FilterError(
                f"object is not deleted, since container `{self._guard.bin}` cannot be made: {made.status}"
            )


def _next_timestamp(moment: str) -> str:
    """Return the next timestamp in Swift's form (``swift.common.utils.Timestamp``): unix seconds, a step is 10 µs.

    :raises FilterError: when ``moment`` is not a timestamp
    """
    try:
        return f"{Decimal(moment) + _STEP:016.5f}"
    except ArithmeticError:
        raise FilterError(f"object is not deleted, since it has no valid time of writing: `{moment}`") from None


def copy_headers(headers: Headers) -> dict[str, str]:
    """Return the headers of the copy of a stored object."""
    kept = {name: headers[name] for name in _KEPT if name in headers}
    for name, value in headers.items():
        if name.startswith(_PREFIXES) and not name.startswith(_FRAGMENTS):
            kept[name] = value
    if _SLO_SIZE in headers:  # listings show the size of the whole object; Swift removes it from its answers
        kept["Content-Type"] = f"{kept.get('Content-Type', '')};swift_bytes={headers[_SLO_SIZE]}"
    return kept


def make_bin_name(container: str, name: str, now: float) -> str:
    """Return the name of an object in the bin; names that would be too long are cut and distinguished by a digest.

    Names of Swift's own (versions of objects) contain zero bytes, which other containers refuse.
    """
    path = "/".join(part.strip("\0").replace("\0", "/") for part in (container, name))
    tail = f"/{now:017.6f}"
    raw = path.encode("utf-8", "surrogateescape")
    if len(raw) + len(tail) <= _LONGEST:
        return path + tail
    digest = hashlib.sha256(raw).hexdigest()[:32]
    cut = raw[: _LONGEST - len(tail) - len(digest) - 1].decode("utf-8", "ignore")
    return f"{cut}~{digest}{tail}"


def _close(reply: Reply) -> None:
    close = getattr(reply.body, "close", None)
    if close is not None:
        close()
