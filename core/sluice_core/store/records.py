"""Plain records that are written to the store and read from it, without commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice_core.messages.policies import Assignment, Entry, Policy, PolicyState
from sluice_core.messages.uploads import Upload


@dataclass(frozen=True, slots=True)
class Draft:
    """One atomic change.

    Keys of ``expect`` are ``assignment/<id>``, ``policy/<id>``, ``state/<id>``, ``upload/<key>``,
    ``entry/<kind>/<name>`` and the names of ``sluice_core.store.commit.scope_version``, values the versions that the
    author of the draft read; 0 means "must not exist".  ``history``, unless empty, must be the current one.  A dropped
    policy takes its assignments and its state with it; a policy that is dropped and put is replaced, and its old
    assignments are removed.
    A draft of states only does not move the epoch.
    ``fence`` maps slots to the ownership under which this was decided (``sluice_core.store.fencing``).
    """

    by: str
    puts: tuple[Assignment, ...] = ()
    drops: tuple[str, ...] = ()
    policies: tuple[Policy, ...] = ()
    policy_drops: tuple[str, ...] = ()
    states: tuple[PolicyState, ...] = ()
    uploads: tuple[Upload, ...] = ()
    upload_drops: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    entry_drops: tuple[str, ...] = ()
    expect: Mapping[str, int] = field(default_factory=dict)
    history: str = ""
    fence: Mapping[str, str] = field(default_factory=dict)

    @property
    def moves(self) -> bool:
        """Whether agents or actor hosts must follow the change."""
        agents = self.puts or self.drops or self.uploads or self.upload_drops or self.entries or self.entry_drops
        return bool(agents or self.policies or self.policy_drops)


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a committed draft; ``version`` is the new version of everything that it wrote."""

    history: str
    epoch: int
    version: int


@dataclass(frozen=True, slots=True)
class Head:
    """The newest change; ``history`` is empty in a new or wiped Redis."""

    history: str = ""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class FullState:
    """All assignments at one moment; ``broken`` maps the id of an undecodable one to the reason."""

    history: str
    epoch: int
    assignments: tuple[Assignment, ...]
    broken: Mapping[str, str] = field(default_factory=dict)
    uploads: tuple[Upload, ...] = ()
    entries: tuple[Entry, ...] = ()
    #: Of the change at ``epoch`` (``sluice_core.store.history_check``); empty when it is not in the stream.
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """The changes after an epoch are no longer available; ``reason`` says why.  Load instead."""

    reason: str


class Replaced(Gap):
    """The stream has another change under the epoch that the reader follows: none of its changes may be applied."""
