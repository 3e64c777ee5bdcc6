"""Every message of Sluice; how they are written is said in ``sluice_core.messages.base``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

from sluice_core.describe import Scalar
from sluice_core.messages.base import Message
from sluice_core.messages.predicate import Predicate

OBJECT: Final = "object"
CONTAINER: Final = "container"
TENANT: Final = "tenant"
CLUSTER: Final = "cluster"
VOLUME: Final = "volume"
LEVELS: Final = (OBJECT, CONTAINER, TENANT, CLUSTER)

NAME: Final = "name"
GROUP: Final = "group"
ALL: Final = "all"
SELECTORS: Final = (NAME, GROUP, ALL)

#: What uploaded code can be.
FILTER_CODE: Final = "filter"
METRIC_CODE: Final = "metric"
CONTROLLER_CODE: Final = "controller"
CODE_KINDS: Final = (FILTER_CODE, METRIC_CODE, CONTROLLER_CODE)
#: Earlier revisions of uploaded code that are kept for roll back.
REVISIONS: Final = 10


def policy_of_assignment(assignment: str) -> str:
    """The policy id in an assignment's id ``<policy>.<number>[@<member>]``."""
    return assignment.partition("@")[0].rpartition(".")[0]


def upload_key(kind: str, keyword: str) -> str:
    """What uploaded code is filed under."""
    return keyword if kind == FILTER_CODE else f"{kind}/{keyword}"


@dataclass(frozen=True, slots=True)
class Target(Message):
    """What a sentence is about.

    ``level`` object, container, tenant, cluster or volume; ``select`` name, group or all;
    ``name`` is ``account[/container[/object]]`` for a name, the group's name for a group,
    empty for ALL and CLUSTER.  ``label`` keeps the words of the sentence where they differ
    (a project's name whose id is in ``name``, an alias).
    """

    level: str
    select: str = NAME
    name: str = ""
    label: str = ""

    def rank(self) -> int:
        """Narrowness: 0 is one object, then a group of objects, ALL OBJECTS, one container …

        Design section 5: object > ALL OBJECTS > container > ALL CONTAINERS > tenant >
        ALL TENANTS > CLUSTER, and at one scope a name before a group before ALL.
        """
        return LEVELS.index(self.level) * 3 + SELECTORS.index(self.select)


@dataclass(frozen=True, slots=True)
class Assignment(Message):
    """One action in force for one target, as agents and the data plane read it.

    ``id`` is ``<policy>.<action number>``, with ``@<member>`` appended when an actor of a
    group or ALL fired for one member; ``member`` then is that member's path at the level of
    ``target`` (whose rank stays that of the sentence).  ``when`` is the predicate over the
    request that remains.  ``created`` (unix milliseconds) of the policy: the newer wins.
    """

    id: str
    policy: str
    kind: str
    verb: str
    keyword: str
    target: Target
    member: str = ""
    params: Mapping[str, Scalar] = field(default_factory=dict)
    place: str = "proxy"
    stage: int = 500
    order: int = 0
    protective: bool = False
    created: int = 0
    when: Predicate = True

    nested: ClassVar[Mapping[str, type[Message]]] = {"target": Target}

    def path(self) -> str:
        """The path this assignment is filed under; empty for ALL, groups and CLUSTER."""
        return self.member or (self.target.name if self.target.select == NAME else "")


@dataclass(frozen=True, slots=True)
class Policy(Message):
    """A policy as the controller keeps it.

    ``source`` as written, ``text`` canonical, ``plan`` the compiled plan's data
    (``sluice_dsl.plan.Plan``); ``dynamic`` says whether an actor runs for it.  Times are unix
    milliseconds.  ``origin`` says what wrote its sentence, ``stereotype/<name>``, ``deploy/<keyword>``,
    ``bw/<account>`` or ``slo/<account>``; empty when somebody did.
    """

    id: str
    source: str
    text: str
    plan: Mapping[str, Any]
    dynamic: bool
    created: int
    created_by: str = ""
    enabled: bool = True
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Revision(Message):
    """One revision of uploaded code: ``number`` counts from 1, ``main`` is the class, ``info`` what it says of itself.

    ``created`` in unix milliseconds.
    """

    number: int
    sha256: str
    size: int
    main: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)
    created: int = 0
    created_by: str = ""


@dataclass(frozen=True, slots=True)
class Upload(Message):
    """Something that was registered at run time, and the code it consists of.

    ``kind`` is ``filter``, ``metric`` (of the proxies' workload) or ``controller`` (global, run by actor hosts).
    ``keyword`` is what sentences call it, a controller's name.  ``environment`` is one of
    ``describe.ENVIRONMENTS``; metrics and controllers are native.  ``language`` and ``main`` tell how to start it
    (``python``, ``java``, ``wasm``; the class to run).  ``sha256`` (hex) and ``size`` identify the code, which is
    immutable: another code is another revision.  ``reverse`` says that it undoes on GET what it did on PUT; only
    such filters are recorded on objects.  ``info`` is the rest of what ``describe.ActionInfo`` says (``MetricInfo``,
    ``control.ControllerInfo``), by its field names, parameters as dictionaries; native code says it itself.
    ``dependencies`` are files (name → SHA-256).  ``earlier`` are the SHA-256 of revisions that objects may still have
    been written by.  ``revisions`` are those before this one, newest first, at most :data:`REVISIONS`: a node that
    cannot load the newest goes on with the first of them that it can.  ``uploaded`` (unix milliseconds) and
    ``uploaded_by`` say when and by whom the present code came.  ``running`` is False for a metric that is not
    measured and a controller that is stopped.  ``self_service`` says that members of a project may use it for their
    own containers.
    """

    keyword: str
    environment: str
    language: str
    main: str
    sha256: str
    size: int
    revision: int = 1
    reverse: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    dependencies: Mapping[str, str] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()
    created: int = 0
    created_by: str = ""
    self_service: bool = False
    kind: str = FILTER_CODE
    revisions: tuple[Revision, ...] = ()
    running: bool = True
    uploaded: int = 0
    uploaded_by: str = ""

    nested: ClassVar[Mapping[str, type[Message]]] = {"revisions": Revision}

    @property
    def key(self) -> str:
        """What it is filed under: a filter's keyword, ``metric/<NAME>``, ``controller/<name>``."""
        return upload_key(self.kind, self.keyword)

    @property
    def current(self) -> Revision:
        """The newest revision; without a digest until code came."""
        when, by = self.uploaded, self.uploaded_by
        return Revision(self.revision, self.sha256, self.size, self.main, self.info, when, by)

    def files(self) -> tuple[str, ...]:
        """SHA-256 of everything that a node must have for it, earlier revisions last."""
        return tuple(dict.fromkeys((self.sha256, *self.dependencies.values(), *self.earlier)))

    def at(self, revision: Revision) -> Upload:
        """This, as it was in ``revision``."""
        return replace(
            self,
            sha256=revision.sha256,
            size=revision.size,
            main=revision.main or self.main,
            info=revision.info,
            revision=revision.number,
            uploaded=revision.created,
            uploaded_by=revision.created_by,
        )


@dataclass(frozen=True, slots=True)
class Entry(Message):
    """One thing in the registry (``sluice_core.messages.registry``); ``created`` in unix milliseconds."""

    kind: str
    name: str
    data: Mapping[str, Any]
    created: int = 0
    created_by: str = ""

    @property
    def key(self) -> str:
        """What it is filed under."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Firing(Message):
    """One thing that a policy actor did: ``what`` is set, changed or taken_back."""

    at: float
    what: str
    member: str = ""
    window: int = 0


@dataclass(frozen=True, slots=True)
class PolicyState(Message):
    """What an actor (family) must know to continue after a restart.

    ``members`` maps a member's path ("" when the policy has one fixed target) to the data of
    its live machine: the residual predicates of its last windows and what is in force now.
    ``status``: waiting, active, failed; ``reason`` says why when failed.
    """

    policy: str
    status: str = "waiting"
    members: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    firings: tuple[Firing, ...] = ()
    reason: str = ""

    nested: ClassVar[Mapping[str, type[Message]]] = {"firings": Firing}


@dataclass(frozen=True, slots=True)
class Change(Message):
    """One entry of the change stream: all of it is applied, or nothing.

    ``puts`` are assignments (new or replacing), ``drops`` assignment ids; ``policies`` are the
    ids of policies created, replaced or deleted, so that actor hosts read them anew.  ``uploads``
    are filters, metrics and controllers registered or replaced, ``upload_drops`` the keys of those taken away.
    ``entries`` are what is new or replaced in the registry, ``entry_drops`` the ``kind/name`` of what was taken out.
    """

    epoch: int
    history: str
    at: float
    by: str = ""
    puts: tuple[Assignment, ...] = ()
    drops: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    uploads: tuple[Upload, ...] = ()
    upload_drops: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    entry_drops: tuple[str, ...] = ()

    nested: ClassVar[Mapping[str, type[Message]]] = {"puts": Assignment, "uploads": Upload, "entries": Entry}


@dataclass(frozen=True, slots=True)
class NodeReport(Message):
    """What an agent says of its node: the cumulative ACK, refusals and health.

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
class Hello(Message):
    """First message of a Swift worker to its agent: who it is and what it can enforce.

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

    binary: ClassVar[bool] = True


#: What the agent's socket is called, and this: where it leaves its :class:`StorageState`.
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
class Counters(Message):
    """Running totals of a worker, sent each second: only rows that changed since they got through.

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

    binary: ClassVar[bool] = True

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        rows = tuple((path, born, tuple(values)) for path, born, values in data.get("rows", ()))
        return super(Counters, cls).from_data({**data, "rows": rows})


@dataclass(frozen=True, slots=True)
class MetricBatch(Message):
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

    binary: ClassVar[bool] = True
