"""Messages of nodes: between Swift's workers and their agent, and from the agent to the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Final, Self

from sluice_core.errors import DecodeError
from sluice_core.messages.base import Message, PackedMessage

#: Numbers of a sketch's buckets stay below this, above its negative (``sluice_core.metrics.sketch``).
LARGEST_BUCKET: Final = 1000


@dataclass(frozen=True, slots=True)
class NodeReport(Message):
    """An agent's report about its node: the cumulative ACK, refusals and health.

    ``state`` is ``ok``, ``stale_history`` (another history or a smaller epoch was seen and not
    adopted; ``detail`` names both) or ``failed`` (snapshot cannot be written; ``detail`` says why).
    ``refused`` maps an assignment id, or ``upload/<key>``, to the reason (at most 100).  ``dropped``
    counts metric batches lost.
    ``storage`` is ``ready`` when all storage daemons of the node run Sluice's disk files, else it names the other
    daemons; empty on a node without storage daemons.  ``plugins`` maps each installed plugin that a Swift process of
    the node left out to the reason.  ``konnector`` is the URL of the node's konnector, empty on a node without one, and
    ``volume_faults`` maps the id of each broken volume there to the reason.  ``unconfirmed_volumes`` maps the id of
    each volume that the konnector took over to the id of its attachment, until the API has confirmed the attachment.
    ``motifs`` is ``ready`` when all proxy workers of the node support contracted objects, else it names the other
    workers; empty from an agent without support for motifs.
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
    plugins: Mapping[str, str] = field(default_factory=dict)
    konnector: str = ""
    volume_faults: Mapping[str, str] = field(default_factory=dict)
    motifs: str = ""
    unconfirmed_volumes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hello(PackedMessage):
    """First message of a Swift worker to its agent: its identity and the actions that it can enforce.

    ``actions`` maps each installed keyword to its version; ``gauges`` names the metrics whose
    values are levels rather than running totals.  ``disk_file`` is the version of Sluice's disk files in a process
    that uses them (object server, auditor, …), 0 elsewhere; ``stored`` are the keywords that the disk files can
    enforce.  ``quantiles`` maps each metric that is a quantile to the name of its sketch and the quantile.  ``plugins``
    maps each installed plugin that the process left out to the reason.  ``url`` is at which the controller can call the
    process, empty for processes that it does not call.  ``volume_faults`` maps the id of each broken volume of a
    konnector to the reason, ``refused_code`` the digest of each uploaded filter that the process no longer uses.
    ``unconfirmed_volumes`` as of :class:`NodeReport`.  ``motifs`` is the version of contracted objects that a proxy
    worker supports, 0 for none.
    """

    worker: str
    role: str
    pid: int
    actions: Mapping[str, int]
    metrics: tuple[str, ...] = ()
    gauges: tuple[str, ...] = ()
    disk_file: int = 0
    stored: tuple[str, ...] = ()
    plugins: Mapping[str, str] = field(default_factory=dict)
    quantiles: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    url: str = ""
    volume_faults: Mapping[str, str] = field(default_factory=dict)
    refused_code: Mapping[str, str] = field(default_factory=dict)
    motifs: int = 0
    unconfirmed_volumes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        made = super(Hello, cls).from_data(data)
        try:
            told = {metric: (str(sketch), float(quantile)) for metric, (sketch, quantile) in made.quantiles.items()}
        except (TypeError, ValueError, AttributeError) as error:
            raise DecodeError(f"not a Hello: quantiles `{made.quantiles}`: {error}") from error
        return replace(made, quantiles=told)


#: Suffix, behind the path of the agent's socket, of the file with its :class:`StorageState`.
STORAGE_STATE_SUFFIX: Final = ".storage"


@dataclass(frozen=True, slots=True)
class StorageState(Message):
    """The storage daemons of a node that run Sluice's disk files, as the agent records them in files.

    ``daemons`` maps a role (``object-auditor``) to the data of its last :class:`Hello`; ``waiting`` names those
    that must report before an object server may transform objects.
    """

    daemons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counters(PackedMessage):
    """Running totals of a worker, sent each second: the rows that changed since they were last delivered.

    ``rows`` are ``[path, born, [value, ...]]``: ``path`` is ``account`` or ``account/container``,
    ``born`` changes when the worker forgot the path and restarted at zero (it is
    :func:`sluice_core.metrics.totals.birth`, so that an agent recognises rows older than itself), the
    values in the order of :attr:`Hello.metrics`.  ``snapshot`` is the id of the snapshot folder
    that the worker reads, so that an agent knows when a replaced one is in use.
    ``sketches`` maps the name of a sketch to a list for each row: bucket, running total, bucket, … of the buckets that
    changed.
    """

    worker: str
    at: float
    rows: tuple[tuple[str, int, tuple[float, ...]], ...] = ()
    snapshot: str = ""
    sketches: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        rows = tuple((path, born, tuple(values)) for path, born, values in data.get("rows", ()))
        made = super(Counters, cls).from_data({**data, "rows": rows})
        for name, sketches in made.sketches.items():
            if len(sketches) != len(rows):
                raise DecodeError(f"{len(sketches)} sketches `{name}`, expected one for each of {len(rows)} rows")
            _check_sketches(sketches)
        return made


HIGHEST: Final = "highest"
LOWEST: Final = "lowest"


@dataclass(frozen=True, slots=True)
class MetricBatch(PackedMessage):
    """All values of one metric on one node for one wall-clock window.

    ``window`` is the unix second at which the window began; ``values`` maps a granularity to
    ``{path: value}`` in the metric's unit.  A batch without values means no activity.
    Of a mean, ``weights`` has the weight of each value; of a ``quantile`` (0.95) ``sketches`` has the packed sketch
    behind each value.  Nodes merge by ``sluice_core.metrics.merge``.
    ``seq`` counts a node's batches of this metric, so that consumers see gaps.
    ``merge`` says which value of several nodes is used, :data:`HIGHEST` or :data:`LOWEST`; empty: they add up.
    """

    node: str
    metric: str
    window: int
    seq: int
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    period: float = 1.0
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    merge: str = ""
    quantile: float = 0.0
    sketches: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        made = super(MetricBatch, cls).from_data(data)
        for found in made.sketches.values():
            _check_sketches(found.values())
        return made


def _check_sketches(sketches: Iterable[Sequence[float]]) -> None:
    """Check that each sketch consists of pairs of a bucket and a count.

    :raises DecodeError: when one is not
    """
    for packed in sketches:
        if not isinstance(packed, list | tuple):
            raise DecodeError(f"`{packed!r}` is no sketch, expected a list")
        buckets, counts = packed[::2], packed[1::2]
        fine = len(buckets) == len(counts) and all(-LARGEST_BUCKET < one < LARGEST_BUCKET for one in buckets)
        if not fine or not all(one >= 0 and isfinite(one) for one in counts):
            raise DecodeError(f"`{packed}` is no sketch, expected pairs of bucket and count")
