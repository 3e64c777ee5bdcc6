"""The policies of one volume, and the filters that it gets at its first attachment.

Only static policies without a condition choose the filters of stored data: a volume must be read with the filters that
it was written with, whatever happens later.  Uploaded filters are among these, also those that do not change data: they
are at the bottom of the stack, and nothing can be inserted below them once it is in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sluice_code.volume_filters import describe_volume_filter
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_core.describe import FILTER, NBDKIT, THROTTLE, Scalar
from sluice_core.errors import Conflict
from sluice_core.messages.policies import (
    ALL,
    CLUSTER,
    GROUP,
    NAME,
    TENANT,
    VOLUME,
    Assignment,
    Entry,
    Target,
    policy_of_assignment,
)
from sluice_core.messages.registry import MEMBER_KINDS
from sluice_core.messages.uploads import Upload
from sluice_core.resolve import Candidates
from sluice_core.store.fencing import assignments, chunks, hash_fields
from sluice_volumes.actions import ENCRYPTION
from sluice_volumes.messages import LUKS, StackStep, VolumeRecord

#: Keyword of a policy → filter of a konnector, of the installed ones that change stored data.
CONTENT_FILTERS: Final[Mapping[str, str]] = {ENCRYPTION: LUKS, "xor": "xor", "bitrev": "bitrev"}
#: Parameters of such a policy for the konnector; those of objects' encryption name keys of objects.
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {LUKS: (), "xor": ("key",), "bitrev": ()}


@dataclass(frozen=True, slots=True)
class VolumePath:
    """A volume as a target: ``account/volume id``, in ``account``, and in groups of the registry."""

    account: str
    path: str
    entries: Mapping[str, Entry]

    def matches(self, target: Target) -> bool:
        """Whether a policy about ``target`` is about this volume."""
        if target.level == CLUSTER:
            return True
        place = {TENANT: self.account, VOLUME: self.path}.get(target.level)
        if place is None:
            return False
        if target.select == GROUP:
            return self._is_member(target.name, place)
        return target.select == ALL or target.name == place

    def _is_member(self, group: str, place: str) -> bool:
        return any(f"{kind}/{group}/{place}" in self.entries for kind in MEMBER_KINDS.values())


def choose_stack(backend: Backend, record: VolumeRecord) -> tuple[StackStep, ...]:
    """The filters of stored data by the present policies; outermost first, the uploaded one last.

    :raises Conflict: when a policy has a parameter that no konnector supports
    """
    contents = backend.policy_cache.contents()
    uploaded = _volume_filters(contents)
    known = CONTENT_FILTERS.keys() | uploaded.keys()
    assignments = [
        one
        for one in _assignments(backend, contents, record)
        if one.kind == FILTER and one.keyword in known and _is_static(contents, one)
    ]
    pipeline = _pipeline(assignments, FILTER)
    last = [one for one in pipeline if one.keyword in uploaded]
    if len(last) > 1:
        said = " and ".join(f"`{one.keyword}` of policy `{one.policy}`" for one in last)
        raise Conflict(f"{said} are uploaded filters, of which a volume has one at most")
    return (
        *(_step(one) for one in pipeline if one.keyword not in uploaded),
        *(_uploaded_step(one, uploaded[one.keyword]) for one in last),
    )


def _volume_filters(contents: CacheContents) -> dict[str, Upload]:
    """The uploaded filters of volumes that have code, by keyword."""
    return {one.keyword: one for one in contents.uploads.values() if one.environment == NBDKIT and one.sha256}


def asked_rates(backend: Backend, record: VolumeRecord) -> dict[str, float]:
    """The limits of policies for a volume now, by parameter; bytes and operations per second."""
    contents = backend.policy_cache.contents()
    found = [one for one in _assignments(backend, contents, record) if one.kind == THROTTLE]
    return {name: float(value) for one in _pipeline(found, THROTTLE) for name, value in one.params.items()}


def _pipeline(found: list[Assignment], kind: str) -> tuple[Assignment, ...]:
    """The assignments of ``kind`` that win; they have no conditions on requests, since volumes have no requests."""
    return (Candidates(one for one in found if one.when is True).constant or {}).get(kind, ())


def _assignments(backend: Backend, contents: CacheContents, record: VolumeRecord) -> Iterator[Assignment]:
    """The assignments that are about the volume; of all others only the ids are read."""
    store = backend.store
    place = VolumePath(record.account, record.path, contents.entries)
    ids = store.run(hash_fields(store.keys.assignments))
    wanted = [name for name in sorted(ids) if _may_concern(name, contents, place)]
    for some in chunks(wanted):
        for one in store.run(assignments(store.keys, some)):
            if place.matches(Target(one.target.level, NAME, one.member) if one.member else one.target):
                yield one


def _may_concern(name: str, contents: CacheContents, place: VolumePath) -> bool:
    member = name.partition("@")[2]
    cached = contents.policies.get(policy_of_assignment(name))
    return member in ("", place.account, place.path) and (cached is None or place.matches(cached.plan.target))


def _is_static(contents: CacheContents, one: Assignment) -> bool:
    cached = contents.policies.get(one.policy)
    return one.when is True and cached is not None and not cached.policy.dynamic


def _step(assignment: Assignment) -> StackStep:
    keyword = CONTENT_FILTERS[assignment.keyword]
    params: dict[str, Scalar] = {
        name: value for name, value in assignment.params.items() if name in _PARAMETERS[keyword]
    }
    if keyword != LUKS and len(params) != len(assignment.params):
        unknown = ", ".join(f"`{name}`" for name in assignment.params if name not in params)
        raise Conflict(
            f"policy `{assignment.policy}` has {unknown} of `{assignment.keyword}`, which volumes do not support"
        )
    return StackStep(keyword, params)


def _uploaded_step(assignment: Assignment, upload: Upload) -> StackStep:
    """With all parameters: later reads must use the defaults of today, too."""
    known = describe_volume_filter(upload).parameters
    defaults = {each.name: each.default for each in known if each.default is not None}
    return StackStep(assignment.keyword, {**defaults, **assignment.params})
