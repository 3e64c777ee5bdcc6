"""Operations on volumes: description, progress and result."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.charts import rate

UNDER_WAY: Final = "under_way"
FAILED: Final = "failed"
#: Running operations on the page, and the number of those that the page advances by reading them.
_SHOWN: Final = 20
_ADVANCED: Final = 3
#: Operations that have ended.
_ENDED: Final = 10
_READ: Final = 1000

NAMES: Final = {
    "create": _("Create volume"),
    "extend": _("Extend volume"),
    "retype": _("Change tier"),
    "snapshot": _("Create snapshot"),
    "delete_snapshot": _("Delete snapshot"),
    "delete": _("Delete volume"),
    "attach": _("Attach volume"),
    "detach": _("Detach volume"),
    "calibrate": _("Measure pool"),
}
_STATES: Final = {
    UNDER_WAY: _("under way"),
    "done": pgettext_lazy("an operation", "done"),
    FAILED: _("failed"),
}
#: Last completed step → what the operation waits for, in the order of the steps; the step's number is the progress.
_ASKED: Final = {"": _("asks Cinder"), "asked": _("waits for Cinder")}
_STEPS: Final[Mapping[str, Mapping[str, Any]]] = {
    "attach": {
        "": _("chooses the filters"),
        "chosen": _("waits for an export of Cinder"),
        "exported": _("waits for the konnector"),
    },
    "detach": {"": _("waits for the konnector"), "asked": _("waits for Cinder")},
    "calibrate": {
        "": _("makes a volume type"),
        "typed": _("makes a volume"),
        "asked": _("attaches the volume"),
        "attached": _("begins to measure"),
        "measuring": _("measures"),
        "clearing": _("deletes what was made"),
    },
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Selects operations; each field is an id or a name, empty for all."""

    volume: str = ""
    pool: str = ""
    project: str = ""

    def includes(self, operation: Mapping[str, Any]) -> bool:
        """Whether an operation on the volume belongs to the pool and the project."""
        return self.pool in ("", operation["data"].get("pool")) and self.project in ("", operation["project"])


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One operation as a line; ``step`` of ``steps`` are completed, and ``detail`` is the awaited event or the result.

    For an ended operation both numbers are 0.
    """

    id: str
    what: str
    state: str
    failed: bool
    detail: str
    volume: str
    by: str
    created_at: str
    step: int = 0
    steps: int = 0


def operation_row(operation: Mapping[str, Any]) -> OperationRow:
    """Convert ``operation`` of the API into words."""
    what, state = operation["what"], operation["state"]
    shown = {
        "id": operation["id"],
        "what": str(NAMES.get(what, what)),
        "state": str(_STATES.get(state, state)),
        "failed": state == FAILED,
        "volume": operation["volume"] or "",
        "by": operation["created_by"],
        "created_at": operation["created_at"],
    }
    if state != UNDER_WAY:
        return OperationRow(**shown, detail=operation["reason"] or result_text(operation["data"]))
    steps = _STEPS.get(what, _ASKED)
    at = operation["step"]
    number = list(steps).index(at) if at in steps else 0
    waits = str(steps.get(at, ""))
    phase = operation["data"].get("phase")
    detail = ": ".join(filter(None, (waits, phase, operation["reason"])))
    return OperationRow(**shown, detail=detail, step=number, steps=len(steps))


def result_text(data: Mapping[str, Any]) -> str:
    """The result of an operation, or its parameters."""
    parts = [
        gettext("node %s") % data["node"] if data.get("node") else "",
        gettext("device %s") % data["device"] if data.get("device") else "",
        gettext("%d GiB") % data["size"] if data.get("size") else "",
        gettext("tier %s") % data["tier"] if data.get("tier") else "",
        gettext("the new size is seen %s") % data["size_seen"] if data.get("size_seen") else "",
    ]
    if data.get("read_bw") is not None:
        figures = {name: rate(data[name]) for name in ("read_bw", "write_bw")}
        parts.append(gettext("reads %(read_bw)s, writes %(write_bw)s") % figures)
    if "fenced" in data:
        fenced = data["fenced"]
        parts.append(
            gettext("the back end has ended its access") if fenced else gettext("the back end has not ended its access")
        )
    return ", ".join(filter(None, parts))


def under_way(client: Client, wanted: Wanted) -> list[OperationRow]:
    """Return the running operations, the newest first; reading some advances them."""
    found = client.volume_operations(state=UNDER_WAY, volume=wanted.volume)
    rows = [one for one in found if wanted.includes(one)][::-1][:_SHOWN]
    rows[:_ADVANCED] = [client.volume_operation(one["id"]) for one in rows[:_ADVANCED]]
    return [operation_row(one) for one in rows if one["state"] == UNDER_WAY]


def ended(client: Client, wanted: Wanted) -> list[OperationRow]:
    """Return the operations that ended last, the newest first."""
    rows = islice(client.collection("/volumes/operations").list(volume=wanted.volume, limit=_READ), _READ)
    last = deque((one for one in rows if one["state"] != UNDER_WAY and wanted.includes(one)), _ENDED)
    return [operation_row(one) for one in last][::-1]
