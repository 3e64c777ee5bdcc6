"""What moves and what may: the picture that one actor host puts into Redis each second.

A picture (``sluice_core.messages.bandwidth_report``) is of use while it is fresh.  When nobody divides, or when
what is there
is too old, there is none: lists are empty then and say so (:attr:`Table.stale`).  Rates are bytes of payload per
second; None is "as much as it likes".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.validation.times import iso_time
from sluice_core.messages.bandwidth_report import BandwidthReport, IdleFlowReport
from sluice_core.store.keys import Keys
from sluice_core.store.operations import Operation, decoded

#: Seconds for which Redis keeps a picture after it was put there.
KEPT: Final = 10.0
#: Seconds after which a picture says nothing about now.
FRESH: Final = 5.0

Row = Mapping[str, Any]
Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """One list out of a picture: rows by their place in the list; ``at`` is unix time, None when there is none.

    ``left_out`` rows are not in the picture, of a big cluster; whether they would be in this list is not known.
    """

    at: float | None = None
    rows: Mapping[str, Data] = field(default_factory=dict)
    left_out: int = 0

    @property
    def stale(self) -> bool:
        """Whether nobody measures now, so that no row does not mean that nothing moves."""
        return self.at is None

    def said(self) -> Data:
        """What stands beside the rows."""
        return {"at": None if self.at is None else iso_time(self.at), "stale": self.stale, "left_out": self.left_out}


def picture_now(backend: Backend, idle: bool = False) -> BandwidthReport | None:
    """The last picture; None when it is older than :data:`FRESH` seconds, or there is none.

    :param idle: with the flows that are idle, which are many and to be read besides
    :raises PeerError: when Redis is away
    """
    return picture_and_age(backend, idle)[0]


def picture_and_age(backend: Backend, idle: bool = False) -> tuple[BandwidthReport | None, float]:
    """The same, and how many seconds old it is: infinitely when there is none.

    :raises PeerError: when Redis is away
    """
    picture, left = backend.store.run(_read(backend.store.keys))
    if picture is None:
        return None, math.inf
    # Redis' own clock says how old it is; those of two hosts may be apart
    age = KEPT - left if left >= 0 else backend.now() - picture.at
    if age > FRESH:
        return None, math.inf
    if idle and picture.promises:
        picture = picture.with_idle(backend.store.run(_read_promises(backend.store.keys, picture.promises)))
    return picture, age


def _read(keys: Keys) -> Operation[tuple[BandwidthReport | None, float]]:
    """The picture, and the seconds for which it is kept yet; negative when that is without an end."""

    def parse(replies: list[Any]) -> tuple[BandwidthReport | None, float]:
        raw, left = replies
        return decoded(BandwidthReport, keys.bandwidth, raw), left / 1000

    return Operation((("GET", keys.bandwidth), ("PTTL", keys.bandwidth)), parse)


def _read_promises(keys: Keys, digest: str) -> Operation[IdleFlowReport | None]:
    key = keys.promises(digest)
    return Operation((("GET", key),), lambda replies: decoded(IdleFlowReport, key, replies[0]))


def shortfall(picture: BandwidthReport | None, policy_id: str, parameter: str = "") -> Data | None:
    """What is missing to keep the promise of a policy, or that of one ``parameter`` of it.

    None when nothing is, or nobody measures.
    """
    missing = None
    if picture is not None:
        missing = picture.lacking.get(policy_id, {}).get(parameter) if parameter else picture.infeasible.get(policy_id)
    return {"shortfall": missing} if missing else None


def flows(picture: BandwidthReport | None, accounts: frozenset[str] | None = None, **wanted: str) -> Table:
    """What each flow is promised, gets and moves; of some ``accounts`` if given.

    ``wanted`` are columns and what must stand in them; empty for anything.
    """

    def data(row: Row, names: Mapping[str, str]) -> Data:
        rates = {name: _rate(row, name) for name in ("floor", "ceiling", "met", "short", "measured")}
        return {
            **_owner(row, names),
            **rates,
            "share": _share(row),
            "waiting": _rate(row, "waiting"),
            "active": bool(row.get("active")),
            "policies": list(row.get("policies", ())),
        }

    rows = picture.flows if picture else ()
    if accounts is not None:
        rows = tuple(one for one in rows if one.get("account") in accounts)
    return _table(picture, "flows", rows, _FLOW, data, wanted)


def nodes(picture: BandwidthReport | None, **wanted: str) -> Table:
    """What each side of each node could move, is given and moves; by method."""

    def data(row: Row, names: Mapping[str, str]) -> Data:
        source = str(row.get("source", "unknown"))
        at = row.get("at")
        return {
            **_texts(row, "node", "server", "side", "method"),
            "capacity": _rate(row, "capacity") if source != "unknown" else None,
            "source": source,
            "assigned": _share(row, "assigned"),
            "measured": _rate(row, "measured"),
            "at": iso_time(at) if isinstance(at, int | float) else None,
        }

    return _table(picture, "nodes", picture.nodes if picture else (), _NODE, data, wanted)


def parts(picture: BandwidthReport | None, **wanted: str) -> Table:
    """Where each flow moves: by node, side and device."""

    def data(row: Row, names: Mapping[str, str]) -> Data:
        moved = {"share": _share(row), "measured": _rate(row, "measured")}
        return {**_owner(row, names), **_texts(row, "node", "side", "device"), **moved}

    return _table(picture, "parts", picture.parts if picture else (), _PART, data, wanted)


def devices(picture: BandwidthReport | None, **wanted: str) -> Table:
    """What each device of the storage nodes moves, by method; ``share`` is of those flows that are held back."""
    found: dict[tuple[str, ...], Data] = {}
    for row in picture.parts if picture else ():
        if not row.get("device"):
            continue
        key = tuple(str(row.get(name, "")) for name in _DEVICE)
        one = found.setdefault(key, {**_texts(row, *_DEVICE), "flows": 0, "share": None, "measured": 0.0})
        share = _share(row)
        one["flows"] += 1
        one["measured"] += _rate(row, "measured")
        if share is not None:
            one["share"] = (one["share"] or 0.0) + share
    return _table(picture, "parts", found.values(), _DEVICE, lambda row, _: dict(row), wanted)


#: What tells one row from another.
_OWNER: Final = ("account", "container", "method", "policy")
_FLOW: Final = _OWNER
_NODE: Final = ("node", "side", "method")
_PART: Final = (*_OWNER, "node", "side", "device")
_DEVICE: Final = ("node", "device", "method")


def _table(
    picture: BandwidthReport | None,
    name: str,
    rows: Iterable[Row],
    key: tuple[str, ...],
    data: Callable[[Row, Mapping[str, str]], Data],
    wanted: Mapping[str, str],
) -> Table:
    if picture is None:
        return Table()
    made = (data(row, picture.policies) for row in rows)
    chosen = [one for one in made if all(not value or _is(one, column, value) for column, value in wanted.items())]
    found: dict[str, Data] = {}
    for one in chosen:
        # a space is smaller than what most names are made of, so that containers follow their account
        place = " ".join(str(one[part]) for part in key)
        while place in found:  # idle under two storage policies that are not known by their index
            place += " "
        found[place] = one
    return Table(picture.at, found, picture.left_out.get(name, 0))


def _is(one: Row, name: str, value: str) -> bool:
    if name == "storage_policy":  # Swift does not look at the case of their names
        return value.casefold() in (str(one["policy"]), str(one[name]).casefold())
    return str(one.get(name, "")) == value


def _owner(row: Row, names: Mapping[str, str]) -> Data:
    policy = row.get("policy", 0)
    return {
        **_texts(row, "account", "container", "method"),
        "policy": policy,
        "storage_policy": names.get(str(policy), ""),
    }


def _texts(row: Row, *names: str) -> Data:
    return {name: str(row.get(name, "")) for name in names}


def _rate(row: Row, name: str) -> float:
    found = row.get(name)
    return float(found) if isinstance(found, int | float) else 0.0


def _share(row: Row, name: str = "share") -> float | None:
    """What it may move; None for as much as it likes."""
    found = row.get(name)
    return float(found) if isinstance(found, int | float) and found >= 0 else None
