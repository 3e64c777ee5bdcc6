"""The bandwidth reports for operators: the documents in Redis that describe the last second.

The dividing host writes the :class:`BandwidthReport` once a second.  It writes the :class:`IdleFlowReport` beside it
only when that changes: ten thousand floors without traffic then cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from typing import Any

from sluice_core.messages.base import Message


class CachedJson(dict[str, Any]):
    """A row or a mapping that stays the same from one second to the next; its JSON is encoded once.

    It must not be changed.
    """

    __slots__ = ("_raw",)

    @property
    def raw(self) -> bytes:
        """Itself as JSON."""
        try:
            return self._raw
        except AttributeError:
            self._raw: bytes = _json(self)
        return self._raw


@dataclass(frozen=True)
class IdleFlowReport(Message):
    """The flows with an objective and without traffic; ``rows`` are as the ``flows`` of a :class:`BandwidthReport`.

    Redis keeps it under its ``digest``, which the report names (field ``promises``).
    """

    rows: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def raw(self) -> bytes:
        """The encoded document."""
        rows = (one.raw if isinstance(one, CachedJson) else _json(one) for one in self.rows)
        return b'{"rows":[%b],"v":%d}' % (b",".join(rows), self.version)

    @cached_property
    def digest(self) -> str:
        """Digest of the encoded document; empty when there are no rows."""
        return blake2b(self.raw, digest_size=16).hexdigest() if self.rows else ""

    def encode(self) -> bytes:
        return self.raw


@dataclass(frozen=True, slots=True)
class BandwidthReport(Message):
    """The measured and assigned bandwidth of the last second, for REST and dashboards.

    ``flows`` are the active flows, and have ``account, container, method, policy, floor, ceiling, share, measured,
    waiting, active, met, short`` (``met`` is the part of the floor that the cluster can carry, ``short`` the missing
    part) and ``policies`` (ids of the policies that apply to it); those with an objective of their own also have
    ``asked`` and ``node_asked``, the floors as they were written: over the whole cluster, and on each object server.
    ``nodes`` have ``node, server, side, method, capacity, source`` (configured, estimated or unknown), ``assigned,
    measured, at``.  ``parts`` have ``node, side, device, account, container, method, policy, share, measured``.
    ``objects`` have ``node, server`` and the fields of :class:`~sluice_core.messages.bandwidth.MovedObject`.
    ``infeasible`` maps a policy's id to its missing bytes per second, ``lacking`` to these by parameter.
    ``policies`` maps the index of each storage policy, as text, to its name.  ``left_out`` maps a list's name to how
    many of its rows are not shown.  ``took`` is the duration of the round in seconds.  ``promises`` is the digest of
    the :class:`IdleFlowReport` beside it, of which ``idle`` rows are shown.  ``controllers`` maps a method to the
    global controller whose rates were assigned, and ``sides`` a method to the side that holds its bytes back.  Rates in
    bytes per second.
    """

    at: float
    host: str
    term: int
    number: int
    flows: tuple[Mapping[str, Any], ...] = ()
    nodes: tuple[Mapping[str, Any], ...] = ()
    parts: tuple[Mapping[str, Any], ...] = ()
    objects: tuple[Mapping[str, Any], ...] = ()
    infeasible: Mapping[str, float] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    took: float = 0.0
    lacking: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    promises: str = ""
    idle: int = 0
    controllers: Mapping[str, str] = field(default_factory=dict)
    sides: Mapping[str, str] = field(default_factory=dict)

    def with_idle(self, idle_flows: IdleFlowReport | None) -> BandwidthReport:
        """Return this report with the first ``idle`` rows of ``idle_flows`` that are not active, in their order.

        :param idle_flows: None when it cannot be read; its rows then count as left out
        """
        if idle_flows is None:
            left_out = {**self.left_out, "flows": self.left_out.get("flows", 0) + self.idle}
            return replace(self, left_out=left_out, promises="", idle=0)
        active = {_promised_to(one) for one in self.flows}
        idle = (one for one in idle_flows.rows if _promised_to(one) not in active)
        return replace(self, flows=(*self.flows, *islice(idle, self.idle)), promises="", idle=0)

    def encode(self) -> bytes:
        data = {"v": self.version, **self.to_data()}
        kept = {name: data.pop(name) for name in ("infeasible", "lacking") if isinstance(data[name], CachedJson)}
        pieces = [b'"%b":%b' % (name.encode(), one.raw) for name, one in kept.items()]
        return b",".join([_json(data)[:-1], *pieces]) + b"}"


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()


def _promised_to(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The key by which an idle flow is compared with the active flows."""
    return row.get("account"), row.get("container"), row.get("method")
