"""The filter that keeps deleted objects in a bin for a time.

Before a DELETE goes on, the object is copied to ``<bin>/<container>/<object>/<timestamp>`` in the same account, as
it is stored: transformed bytes stay transformed and carry what undoes them, manifests and links stay what
they are.  So a copy costs the stored bytes, and is restored by a server-side copy.  Large objects are
kept as manifests; their segments are objects, and are kept when they are deleted themselves.  Where a
copy cannot be made nothing is deleted.  The copy expires by Swift's object expirer; in the bin itself DELETE
deletes.

What is deleted is the very state that was copied: the deletion is dated right after it.  An object that is written
meanwhile is newer and stays, or, when it was there before the deletion, Swift refuses (409) and it is kept and deleted
in turn.
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

#: What of a stored object is written back, beside everything with one of the prefixes.
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
#: What Swift itself says of fragments; it says it anew of the copy's.
_FRAGMENTS: Final = "X-Object-Sysmeta-Ec-"
_SLO_SIZE: Final = "X-Object-Sysmeta-Slo-Size"
#: Longest name of an object, in bytes.
_LONGEST: Final = 1024
_WEEK: Final = 7 * 86400.0
#: How often an object is kept and deleted anew that is written meanwhile.
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
            return None  # the last is the expirer: such an object was to go
        return _Guard(self, call)


class _Guard(Visit):
    def __init__(self, guard: DeleteGuard, call: Call) -> None:
        self._guard = guard
        self._call = call
        self._dated = False

    def request(self) -> Reply | None:
        """Keep the object, unless the request will fail anyway, which Swift says itself."""
        denial = self._call.authorize()
        if denial is not None:
            _close(denial)
            return None
        moment = self._kept()
        if moment and _MOMENT not in self._call.headers:  # else another cluster dates it: container sync
            self._call.headers[_MOMENT] = moment
            self._dated = True
        return None

    def response(self, reply: Reply) -> Reply:
        """Repeat both when a newer object was there."""
        for _ in range(_TRIES):
            if reply.code != _CONFLICT or not self._dated:
                break
            _close(reply)
            moment = self._kept()  # empty when somebody else deleted it: Swift says so
            reply = self._call.send("DELETE", headers={_MOMENT: moment} if moment else {}, stored=True)
        return reply

    def _kept(self) -> str:
        """Copy the object; the moment right after it was written, empty when there is none.

        :raises FilterError: when there is an object and it cannot be kept
        """
        moment = self._keep()
        if moment is None:
            self._make_bin()
            moment = self._keep()
        if moment is None:
            raise FilterError(f"object is not deleted, since container `{self._guard.bin}` is not there")
        return moment

    def _keep(self) -> str | None:
        """As :meth:`_kept`; None when there is no bin."""
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
    """The next moment as Swift writes it (``swift.common.utils.Timestamp``): unix seconds, a step is 10 µs.

    :raises FilterError: when ``moment`` is none
    """
    try:
        return f"{Decimal(moment) + _STEP:016.5f}"
    except ArithmeticError:
        raise FilterError(f"object is not deleted, since nobody says when it was written: `{moment}`") from None


def copy_headers(headers: Headers) -> dict[str, str]:
    """What must be sent with the bytes of a stored object so that the copy is what it is."""
    kept = {name: headers[name] for name in _KEPT if name in headers}
    for name, value in headers.items():
        if name.startswith(_PREFIXES) and not name.startswith(_FRAGMENTS):
            kept[name] = value
    if _SLO_SIZE in headers:  # listings show the size of the whole; Swift takes this off its answers
        kept["Content-Type"] = f"{kept.get('Content-Type', '')};swift_bytes={headers[_SLO_SIZE]}"
    return kept


def make_bin_name(container: str, name: str, now: float) -> str:
    """Where in the bin an object is kept; names that would be too long are cut and told apart by a digest.

    Names of Swift's own (versions of objects) hold zero bytes, which no other container takes.
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
