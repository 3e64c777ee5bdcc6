"""``GET /effective``: the actions that hold for one request, or one volume, and the overridden ones with the reason.

The answer is computed like on a node: from the same assignments, found by the same snapshot keys, resolved by the same
``sluice_core.resolve``.  Only the *reasons* are computed here, from that result.

Reasons why an action does not hold, in the order in which they are checked:

=============  ====================================================================================
``disabled``   its policy is switched off
``waiting``    its actor sets nothing now, and its observation is not known (repeat the request after a second)
``no_value``   its actor sets nothing now: one of its metrics has no value
``condition``  its condition does not hold, for the metrics or for this request
``unknown``    its condition needs a property that is not known of this request
``newer``      a newer policy sets the same keyword at the same scope
``deleted``    a DELETE removes it
``narrower``   a policy of a narrower scope decides its kind
=============  ====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.policies.selectors import fresh_observation
from sluice_core.describe import KINDS, MOTIF, OBJECTS, VOLUMES
from sluice_core.errors import CallerError
from sluice_core.messages.policies import (
    CONTAINER,
    GROUP,
    LEVELS_ABOUT,
    NAME,
    OBJECT,
    TENANT,
    VOLUME,
    Assignment,
    Entry,
    Target,
    policy_of_assignment,
)
from sluice_core.messages.predicate import Facts, compile_predicate
from sluice_core.messages.registry import GROUP_KINDS
from sluice_core.resolve import Candidates, Pipelines, replaces
from sluice_core.snapshot.keys import snapshot_group_key, snapshot_key, snapshot_keys, snapshot_volume_keys
from sluice_core.snapshot.records import record_key
from sluice_core.store.fencing import assignments, chunks, hash_fields

_DEPTHS: Final = {TENANT: 1, CONTAINER: 2, OBJECT: 3}


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """One account, container or object, or one volume, and the keys of all records that concern it."""

    account: str
    container: str
    object: str
    keys: frozenset[bytes]
    volume: str = ""

    @classmethod
    def read(cls, text: str, entries: Mapping[str, Entry], account_of: Callable[[str], str] = str) -> ResourcePath:
        """The place called ``account[/container[/object]]``, with the groups in ``entries`` that contain it.

        :param account_of: returns the account of a tenant, which may be given by its project's name
        :raises CallerError: when there is no account in it, or half a surrogate pair
        """
        account, _, rest = text.partition("/")
        container, _, obj = rest.partition("/")
        if not account or (obj and not container):
            raise CallerError(f"`target` is `{text}`, expected account[/container[/object]]")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise CallerError("`target` contains half a surrogate pair, which is not a character") from None
        account = account_of(account)
        paths = {TENANT: account, CONTAINER: f"{account}/{container}" if container else ""}
        keys = {*snapshot_keys(account, container, obj), *_group_keys(paths, entries)}
        return cls(account, container, obj, frozenset(keys))

    @classmethod
    def read_volume(
        cls, text: str, entries: Mapping[str, Entry], account_of: Callable[[str], str] = str
    ) -> ResourcePath:
        """The volume called ``account/volume id``, with the groups in ``entries`` that contain it.

        :param account_of: returns the account of a tenant, which may be given by its project's name
        :raises CallerError: when it has another form
        """
        account, _, volume = text.partition("/")
        if not account or not volume or "/" in volume or not text.isprintable():
            raise CallerError(f"`volume` is `{text}`, expected `account/volume id`")
        account = account_of(account)
        groups = _group_keys({TENANT: account, VOLUME: f"{account}/{volume}"}, entries)
        return cls(account, "", "", frozenset((*snapshot_volume_keys(account, volume), *groups)), volume)

    def matches(self, target: Target) -> bool:
        """Whether a policy about ``target`` may set an action for this place."""
        if LEVELS_ABOUT.get(target.level, self.about) != self.about:
            return False
        if target.select == NAME and target.name:
            return snapshot_key(target.level, target.name) in self.keys
        if target.select == GROUP:
            return snapshot_group_key(target.level, target.name) in self.keys
        return True

    def path_at(self, level: str) -> str:
        """The path of this place's part at ``level``; empty for the cluster."""
        if level == VOLUME:
            return f"{self.account}/{self.volume}" if self.volume else ""
        parts = (self.account, self.container, self.object)[: _DEPTHS.get(level, 0)]
        return "/".join(part for part in parts if part)

    @property
    def members(self) -> frozenset[str]:
        """All paths by which an actor may have set an action for this place alone."""
        return frozenset(filter(None, map(self.path_at, (*_DEPTHS, VOLUME))))

    @property
    def about(self) -> str:
        """The resource type: volumes, or else objects."""
        return VOLUMES if self.volume else OBJECTS

    @property
    def level(self) -> str:
        """tenant, container, object or volume."""
        if self.volume:
            return VOLUME
        return OBJECT if self.object else CONTAINER if self.container else TENANT


def _group_keys(paths: Mapping[str, str], entries: Mapping[str, Entry]) -> Iterator[bytes]:
    """The keys of the groups' records, by the paths at the levels that groups may have."""
    kinds = {GROUP_KINDS[level].group: level for level in paths}
    for entry in entries.values():
        level = kinds.get(entry.kind, "")
        path = paths.get(level, "")
        if path and f"{GROUP_KINDS[level].member}/{entry.name}/{path}" in entries:
            yield snapshot_group_key(level, entry.name)


def affected_assignments(backend: Backend, contents: CacheContents, place: ResourcePath) -> list[Assignment]:
    """The assignments that a node finds for ``place``; of all others only the ids are read."""
    store = backend.store
    ids = store.run(hash_fields(store.keys.assignments))
    wanted = [name for name in sorted(ids) if _may_concern(name, contents, place)]
    found = [one for some in chunks(wanted) for one in store.run(assignments(store.keys, some))]
    return [one for one in found if record_key(one) in place.keys and one.concerns(place.about)]


def _may_concern(name: str, contents: CacheContents, place: ResourcePath) -> bool:
    _, at, member = name.partition("@")
    if at and member not in place.members:
        return False
    cached = contents.policies.get(policy_of_assignment(name))
    return cached is None or place.matches(cached.plan.target)


DISABLED: Final = "disabled"
WAITING: Final = "waiting"
NO_VALUE: Final = "no_value"
CONDITION: Final = "condition"
UNKNOWN: Final = "unknown"
NEWER: Final = "newer"
DELETED: Final = "deleted"
NARROWER: Final = "narrower"
REASONS: Final = (DISABLED, WAITING, NO_VALUE, CONDITION, UNKNOWN, NEWER, DELETED, NARROWER)
#: The maximum number of policies whose actors are asked for their observations, for one request.
_ASKED: Final = 20


@dataclass(frozen=True, slots=True)
class Overridden:
    """An action that does not hold: an assignment, or (without one) an action of a policy that has set none."""

    policy: str
    kind: str
    keyword: str
    reason: str
    by: tuple[str, ...] = ()
    assignment: Assignment | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The actions of one kind that hold: ``pipeline`` in PUT order, ``deletes`` that had an effect or could have."""

    kind: str
    pipeline: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]
    overridden: tuple[Overridden, ...]


@dataclass(frozen=True, slots=True)
class Effective:
    """The actions that hold for a request, at ``epoch``."""

    place: ResourcePath
    facts: Facts
    epoch: int
    verdicts: tuple[Verdict, ...]


def effective(backend: Backend, place: ResourcePath, facts: Facts) -> Effective:
    """The actions that hold now for a request with ``facts`` at ``place``."""
    contents = backend.policy_cache.contents()
    affected = affected_assignments(backend, contents, place)
    pipelines = Candidates(affected).resolve(facts)
    absent = list(_absent(backend, contents, place, {one.policy for one in affected}))
    verdicts = []
    for kind in KINDS:
        mine = [one for one in affected if one.kind == kind]
        deletes: list[Assignment] = []
        overridden: list[Overridden] = []
        # For motifs each keyword is decided by itself.
        keywords = {one.keyword for one in mine} if kind == MOTIF else {""}
        for keyword in sorted(keywords):
            found_deletes, found_overridden = explain_overridden(
                [one for one in mine if keyword in ("", one.keyword)], pipelines, facts
            )
            deletes += found_deletes
            overridden += found_overridden
        overridden += [one for one in absent if one.kind == kind]
        if mine or overridden:
            verdicts.append(Verdict(kind, pipelines.get(kind, ()), tuple(deletes), tuple(overridden)))
    return Effective(place, facts, contents.head.epoch, tuple(verdicts))


def explain_overridden(
    assignments: Sequence[Assignment], pipelines: Pipelines, facts: Facts
) -> tuple[list[Assignment], list[Overridden]]:
    """For the assignments of one kind: the deletes in force, and the overridden ones with the reason."""
    held = {one.id for pipeline in pipelines.values() for one in pipeline}
    deletes: list[Assignment] = []
    overridden: list[Overridden] = []
    deciding: tuple[str, ...] = ()
    deleted: dict[str, str] = {}
    for _, rank in groupby(sorted(assignments, key=_rank_and_age), key=lambda one: one.target.rank()):
        holding = []
        for assignment in rank:
            answer = compile_predicate(assignment.when)(facts)
            if answer is True:
                holding.append(assignment)
            else:
                overridden.append(_overridden(assignment, CONDITION if answer is False else UNKNOWN))
        winners = []
        for number, assignment in enumerate(holding, 1):
            winner = next((newer for newer in reversed(holding[number:]) if replaces(newer, assignment)), assignment)
            if winner is not assignment:
                overridden.append(_overridden(assignment, NEWER, winner.policy))
                continue
            winners.append(assignment)
            if assignment.verb == "delete":
                deletes.append(assignment)
                deleted.setdefault(assignment.keyword, assignment.policy)
            elif assignment.id not in held:
                by_delete = assignment.keyword in deleted
                by = (deleted[assignment.keyword],) if by_delete else deciding
                overridden.append(_overridden(assignment, DELETED if by_delete else NARROWER, *by))
        if holding and not deciding:
            deciding = tuple(dict.fromkeys(one.policy for one in winners))
    return deletes, overridden


def _rank_and_age(one: Assignment) -> tuple[int, int, str, int]:
    return (one.target.rank(), one.created, one.policy, one.order)


def _overridden(one: Assignment, reason: str, *by: str) -> Overridden:
    return Overridden(one.policy, one.kind, one.keyword, reason, by, one)


def _absent(backend: Backend, contents: CacheContents, place: ResourcePath, present: set[str]) -> Iterator[Overridden]:
    """Actions of policies about ``place`` that have set no assignment there."""
    near = (one for one in contents.ordered if one.policy.id not in present and place.matches(one.plan.target))
    silent = [one for one in near if any(place.about in action.about for action in one.plan.actions)]
    asked = [one for one in silent if one.policy.dynamic and one.policy.enabled][:_ASKED]
    observed = {one.policy.id: _observed(backend, place, one) for one in asked}
    for cached in silent:
        reason, seen = _silence(cached, observed.get(cached.policy.id))
        for action in (action for action in cached.plan.actions if place.about in action.about):
            yield Overridden(cached.policy.id, action.kind, action.keyword, reason, observed=seen)


def _silence(cached: CachedPolicy, seen: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any]]:
    if not cached.policy.enabled:
        return DISABLED, {}
    if not cached.policy.dynamic:
        return CONDITION, {}
    if seen is None:
        return WAITING, {}
    values = {reading.label: seen.get(reading.label) for reading in cached.plan.columns}
    return (NO_VALUE if None in values.values() else CONDITION), values


def _observed(backend: Backend, place: ResourcePath, cached: CachedPolicy) -> Mapping[str, Any] | None:
    """The metric values that its actor observed for this place; None if they are not known."""
    document = fresh_observation(backend, cached)
    if document is None:
        return None
    if cached.plan.target.select == NAME:
        return dict(document.get("values", {}))
    path = place.path_at(cached.plan.granularity if cached.plan.target.select != GROUP else cached.plan.target.level)
    members: Mapping[str, Mapping[str, Any]] = document.get("members", {})
    return dict(members.get(path, document.get("values", {})))


def decided_by(pipeline: Iterable[Assignment], deletes: Iterable[Assignment]) -> list[str]:
    """The policies that decide a kind."""
    return list(dict.fromkeys(one.policy for one in (*pipeline, *deletes)))
