"""Messages of nodes: between Swift's workers and their agent, and from the agent to the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from sluice_core.messages.base import Message, PackedMessage


@dataclass(frozen=True, slots=True)
class NodeReport(Message):
    """An agent's report about its node: the cumulative ACK, refusals and health.

    ``state`` is ``ok``, ``stale_history`` (another history or a smaller epoch was seen and not
    adopted; ``detail`` names both) or ``failed`` (snapshot cannot be written; ``detail`` says why).
    ``refused`` maps an assignment id, or ``upload/<key>``, to the reason (at most 100).  ``dropped``
    counts metric batches lost.
    ``storage`` is ``ready`` when all storage daemons of the node run our disk files, else it names those that
    do not; empty on a node without any.
    """

    node: str
    history: str
    epoch: int
    state: str = "ok"
    detail: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    workers: int = 0
    assignments: int = 0
    dropped: int = 0
    software: str = ""
    started: float = 0.0
    at: float = 0.0
    storage: str = ""
    code: Mapping[str, int] = field(default_factory=dict)
    sandbox: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hello(PackedMessage):
    """First message of a Swift worker to its agent: its identity and what it can enforce.

    ``actions`` maps each installed keyword to its version; ``gauges`` names the metrics whose
    values are levels rather than running totals.  ``disk_file`` is the version of our disk files in a process
    that uses them (object server, auditor, …), 0 elsewhere; ``stored`` are the keywords that they can obey.
    """

    worker: str
    role: str
    pid: int
    actions: Mapping[str, int]
    metrics: tuple[str, ...] = ()
    gauges: tuple[str, ...] = ()
    disk_file: int = 0
    stored: tuple[str, ...] = ()


#: Suffix, behind the path of the agent's socket, of the file with its :class:`StorageState`.
STORAGE_STATE_SUFFIX: Final = ".storage"


@dataclass(frozen=True, slots=True)
class StorageState(Message):
    """Which storage daemons of a node are known to run our disk files, as the agent keeps it in files.

    ``daemons`` maps a role (``object-auditor``) to the data of its last :class:`Hello`; ``waiting`` names those
    that must come before an object server may transform anything.
    """

    daemons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counters(PackedMessage):
    """Running totals of a worker, sent each second: the rows that changed since they were last delivered.

    ``rows`` are ``[path, born, [value, ...]]``: ``path`` is ``account`` or ``account/container``,
    ``born`` changes when the worker forgot the path and began again at zero (it is
    :func:`sluice_core.metrics.totals.birth`, so that an agent can tell rows older than itself), the
    values in the order of :attr:`Hello.metrics`.  ``snapshot`` is the id of the snapshot folder
    that the worker reads, so that an agent knows when a replaced one is really in use.
    """

    worker: str
    at: float
    rows: tuple[tuple[str, int, tuple[float, ...]], ...] = ()
    snapshot: str = ""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        rows = tuple((path, born, tuple(values)) for path, born, values in data.get("rows", ()))
        return super(Counters, cls).from_data({**data, "rows": rows})


@dataclass(frozen=True, slots=True)
class MetricBatch(PackedMessage):
    """All values of one metric on one node for one wall-clock window.

    ``window`` is the unix second at which the window began; ``values`` maps a granularity to
    ``{path: value}`` in the metric's unit.  A batch without values says: nothing happened here.
    Of a mean, ``weights`` has the weight of each value; nodes merge by ``sluice_core.metrics.merge``.
    ``seq`` counts a node's batches of this metric, so that consumers see gaps.
    """

    node: str
    metric: str
    window: int
    seq: int
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    period: float = 1.0
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
