"""The data of motifs in Redis: daemons, calls to them and their answers, running operations, spaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final

from sluice_core.describe import MOTIF, ActionInfo, Parameter
from sluice_core.messages.base import Message

#: The calls to a daemon; each is a method of ``calls.MotifCalls``.
ATTACH: Final = "attach"
DETACH: Final = "detach"
SHOW: Final = "show"
EXPAND: Final = "expand"
CONTRACT: Final = "contract"
WHY: Final = "why"
LIST: Final = "list_items"
VERBS: Final = (ATTACH, DETACH, SHOW, EXPAND, CONTRACT, WHY, LIST)

#: The states of an operation.
WAITING: Final = "waiting"
RUNNING: Final = "running"
DONE: Final = "done"
CANCELLED: Final = "cancelled"


@dataclass(frozen=True, slots=True)
class MotifTemplate(Message):
    """A template as a daemon announces it: its keyword, parameters and help, and how an item relates to its sources."""

    keyword: str
    help: str = ""
    parameters: tuple[Mapping[str, Any], ...] = ()
    relation: str = ""
    exact: bool = True

    @property
    def info(self) -> ActionInfo:
        """The language's description of the template.

        :raises TypeError: for a newer daemon's description with parameters that this version does not know
        """
        return ActionInfo(self.keyword, MOTIF, self.help, tuple(map(Parameter.from_data, self.parameters)))

    @classmethod
    def describe(cls, info: ActionInfo, relation: str, exact: bool) -> MotifTemplate:
        """The message about a template."""
        return cls(info.keyword, info.help, tuple(map(asdict, info.parameters)), relation, exact)


@dataclass(frozen=True, slots=True)
class MotifDaemon(Message):
    """A running daemon `sluice-motifs`.

    :param name: of this run only
    :param node: on which it runs
    :param started: unix seconds
    """

    name: str
    node: str
    software: str = ""
    started: float = 0.0
    templates: tuple[MotifTemplate, ...] = ()

    nested: ClassVar[Mapping[str, type[Message]]] = {"templates": MotifTemplate}


@dataclass(frozen=True, slots=True)
class MotifCall(Message):
    """A call of the API to any free daemon.

    :param verb: one of :data:`VERBS`
    :param arguments: of the method of that name
    :param request: the id of the API's request that it is for; empty from an older API
    """

    id: str
    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    request: str = ""


@dataclass(frozen=True, slots=True)
class MotifAnswer(Message):
    """The answer to a call: ``status`` as of HTTP, ``result`` of a success, ``reason`` of a failure."""

    status: int = 200
    result: Any = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MotifOperation(Message):
    """The expansion of all contracted items of an account, of one container, or of the cluster, in the background.

    ``account`` and ``container`` are empty for all.  ``expanded`` and ``failed`` count items, ``bytes`` those that were
    made; ``examples`` are the last failed ones, with the reason.  ``remaining`` is the number of items known to remain.
    Times are unix seconds, 0 for never.
    """

    id: str
    account: str = ""
    container: str = ""
    state: str = WAITING
    expanded: int = 0
    failed: int = 0
    bytes: int = 0
    remaining: int = 0
    examples: tuple[tuple[str, str], ...] = ()
    created: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    by: str = ""
    daemon: str = ""


@dataclass(frozen=True, slots=True)
class SpaceStatus(Message):
    """The contents of a space and the cost of its target, as its owner reported it last.

    Bytes are plain ones.  ``hits`` are opens of items that had their bytes, ``misses`` opens of others, both of
    the last hour; ``expansions`` and ``seconds_lost`` are those of the misses since the owner started, and
    ``expansions_per_second`` and ``expansion_time`` (mean seconds of one) of the last period.
    ``state`` is ``kept``, ``contracting``, ``filling``, ``above`` (its target, with the ``reason``), ``thrashing`` or
    ``suspended``.  ``parts`` maps the path of each part to its target and contents.
    """

    path: str
    level: str
    target: int
    used: int
    contracted: int
    items: int = 0
    contracted_items: int = 0
    policy: str = ""
    min_age: float = 0.0
    verify: str = ""
    hits: int = 0
    misses: int = 0
    expansions: int = 0
    seconds_lost: float = 0.0
    expansions_per_second: float = 0.0
    expansion_time: float = 0.0
    state: str = "kept"
    reason: str = ""
    owner: str = ""
    said_by: str = ""
    at: float = 0.0
    parts: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float | None:
        """The fraction of opens of items that had their bytes, 0 to 1; None without opens."""
        opens = self.hits + self.misses
        return self.hits / opens if opens else None

    @property
    def free(self) -> float:
        """The free fraction of the target, 0 to 1."""
        return max(0.0, 1 - self.used / self.target) if self.target else 0.0
