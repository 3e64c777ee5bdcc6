"""Events: failures anywhere in the cluster, as the log in Redis keeps them (``sluice_core.store.events``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from sluice_core.errors import DecodeError
from sluice_core.messages.base import Message

INFO: Final = "info"
WARNING: Final = "warning"
ERROR: Final = "error"
#: From least to most severe.
SEVERITIES: Final = (INFO, WARNING, ERROR)

_YEAR_9999: Final = 253_402_300_799

REFUSED: Final = "refused"
TRIAL_FAILED: Final = "trial_failed"
CODE_UNUSABLE: Final = "code_unusable"
NODE_AWAY: Final = "node_away"
NODE_FAILED: Final = "node_failed"
NODE_WELL: Final = "node_well"
ENVIRONMENT_FAILED: Final = "environment_failed"
PLUGIN_LEFT_OUT: Final = "plugin_left_out"
POLICY_SUSPENDED: Final = "policy_suspended"
CONTROLLER_FAILED: Final = "controller_failed"
FLOOR_SHORT: Final = "floor_short"
FLOOR_MET: Final = "floor_met"
VOLUME_CREATED: Final = "volume_created"
VOLUME_EXTENDED: Final = "volume_extended"
VOLUME_RETYPED: Final = "volume_retyped"
VOLUME_DELETED: Final = "volume_deleted"
VOLUME_ATTACHED: Final = "volume_attached"
VOLUME_DETACHED: Final = "volume_detached"
VOLUME_FAILED: Final = "volume_failed"
MOTIF_CONTRACTED: Final = "motif_contracted"
MOTIF_THRASHING: Final = "motif_thrashing"
MOTIF_DETACHED: Final = "motif_detached"
MOTIF_MISMATCH: Final = "motif_mismatch"
NAME_TAKEN_OVER: Final = "name_taken_over"
EVENTS_LEFT_OUT: Final = "events_left_out"

#: Kinds that mark a beginning or an end: each repetition is logged, however soon it comes.
TRANSITIONS: Final = frozenset(
    {
        NODE_AWAY,
        NODE_FAILED,
        NODE_WELL,
        FLOOR_SHORT,
        FLOOR_MET,
        VOLUME_CREATED,
        VOLUME_EXTENDED,
        VOLUME_RETYPED,
        VOLUME_DELETED,
        VOLUME_ATTACHED,
        VOLUME_DETACHED,
        VOLUME_FAILED,
    }
)

#: Kind → its severity, and its description; the documentation is compared with it.
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    REFUSED: (WARNING, "a node refuses what a policy sets"),
    TRIAL_FAILED: (WARNING, "uploaded code failed its trial, so the API did not take it"),
    CODE_UNUSABLE: (ERROR, "a node cannot use the newest revision of uploaded code"),
    NODE_AWAY: (ERROR, "a node's agent has been silent for longer than `node_timeout`"),
    NODE_FAILED: (ERROR, "a node's agent reports another state than `ok`"),
    NODE_WELL: (INFO, "a silent or failed node reports again, or is `ok` again"),
    ENVIRONMENT_FAILED: (ERROR, "an isolated environment of a node does not work"),
    PLUGIN_LEFT_OUT: (WARNING, "a Swift process of a node runs without an installed plugin"),
    POLICY_SUSPENDED: (ERROR, "a policy's actor failed, or cannot run"),
    CONTROLLER_FAILED: (ERROR, "a global controller failed"),
    FLOOR_SHORT: (WARNING, "the cluster cannot carry the floors of a policy"),
    FLOOR_MET: (INFO, "it can again"),
    VOLUME_CREATED: (INFO, "Cinder created a volume"),
    VOLUME_EXTENDED: (INFO, "Cinder extended a volume"),
    VOLUME_RETYPED: (INFO, "Cinder gave a volume another type"),
    VOLUME_DELETED: (INFO, "Cinder deleted a volume"),
    VOLUME_ATTACHED: (INFO, "Cinder attached a volume"),
    VOLUME_DETACHED: (INFO, "Cinder detached a volume"),
    VOLUME_FAILED: (
        ERROR,
        "an operation on a volume failed, or a konnector has a broken volume, or one that it cannot detach",
    ),
    MOTIF_CONTRACTED: (INFO, "objects of a space give up their bytes for the first time since its daemon began"),
    MOTIF_THRASHING: (WARNING, "a space stays above its target: contracted objects are read again too soon"),
    MOTIF_DETACHED: (WARNING, "a source of an object is gone, so its motif was detached and its bytes stay"),
    MOTIF_MISMATCH: (ERROR, "a motif made other bytes than a contracted object had, which was not stored"),
    NAME_TAKEN_OVER: (ERROR, "a built-in of this version has the name of a registered metric, term or filter"),
    EVENTS_LEFT_OUT: (WARNING, "a source logged too much: so many of its events were left out"),
}


@dataclass(frozen=True, slots=True)
class Event(Message):
    """A failure, or the end of one.

    ``at``: unix time of detection.  ``source`` is the source whose rate of events is limited: a node, an actor host,
    ``api`` or ``bandwidth``.  ``subject`` is the subject besides ``node`` and ``policy``: code, a plugin, an
    environment.  ``fields`` are further values, by name.  A newer version may log kinds that are not in :data:`KINDS`.
    ``id`` is the position in the log; the reader of the log sets it.
    """

    at: float
    severity: str
    kind: str
    text: str
    source: str
    subject: str = ""
    node: str = ""
    policy: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""

    texts: ClassVar[tuple[str, ...]] = ("severity", "kind", "text", "source", "subject", "node", "policy", "id")

    @classmethod
    def make(cls, at: float, kind: str, text: str, source: str, **more: Any) -> Self:
        """Return an event of one of :data:`KINDS`, with its severity; ``more`` are further fields."""
        return cls(at, KINDS[kind][0], kind, text, source, **more)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        made = super(Event, cls).from_data(data)
        for name in cls.texts:
            if not isinstance(getattr(made, name), str):
                raise DecodeError(f"not an Event: `{name}` is no text")
        if not isinstance(made.at, int | float) or not 0 <= made.at <= _YEAR_9999:
            raise DecodeError(f"not an Event: `at` is `{made.at}`, expected unix time")
        if not isinstance(made.fields, Mapping):
            raise DecodeError("not an Event: `fields` is no object")
        return made

    @property
    def repeats(self) -> str:
        """A key that is equal for two events of one source if the later one adds nothing; empty if it cannot repeat."""
        if self.kind in TRANSITIONS:
            return ""
        return "\n".join((self.kind, self.node, self.policy, self.subject))
