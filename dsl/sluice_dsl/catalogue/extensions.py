"""Additions to the vocabulary on a cluster with volumes, and on one with motif daemons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from sluice_core.describe import ActionInfo
from sluice_core.messages.policies import NAME, VOLUME, Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_motif_control.actions import MOTIF_ACTIONS, TEMPLATE
from sluice_motif_control.spaces import MOTIF_METRICS
from sluice_volumes.actions import VOLUME_ACTIONS
from sluice_volumes.messages import VolumeRecord
from sluice_volumes.metrics import POOL_METRICS, VOLUME_METRICS

#: Names among which a near miss is searched; comparing a word with that many takes some 20 ms.
MOST_NAMES: Final = 1000


class VolumeIndex:
    """Volumes by their names in sentences; a name is not unique, so it may mean several volumes."""

    def __init__(self, records: Iterable[VolumeRecord]) -> None:
        self._by_id: dict[str, VolumeRecord] = {}
        self._by_name: dict[str, list[VolumeRecord]] = {}
        for volume in records:
            self._by_id[volume.id] = volume
            if volume.name:
                self._by_name.setdefault(volume.name, []).append(volume)

    def find(self, written: str, account_of: Callable[[str], str]) -> list[Target]:
        """Return the volumes that ``written``, a name, ``tenant/name``, ``tenant/id`` or an id, may mean.

        :param account_of: the Swift account of a tenant's name
        """
        matching = self._called(written)
        tenant, slash, rest = written.partition("/")
        inside = self._called(rest) if slash else []
        if inside:  # only then is the account of the tenant needed
            account = account_of(tenant)
            matching += [one for one in inside if one.account == account]
        return list({one.id: Target(VOLUME, NAME, one.path, one.name) for one in matching}.values())

    def names(self) -> Collection[str]:
        """Names among which a near miss is searched."""
        return tuple(islice(self._by_name, MOST_NAMES))

    def __len__(self) -> int:
        return len(self._by_id)

    def _called(self, word: str) -> list[VolumeRecord]:
        known = self._by_id.get(word)
        return [*([known] if known else []), *self._by_name.get(word, ())]


def with_volumes(
    catalogue: Catalogue, volumes: Callable[[str], Sequence[Target]], names: Callable[[], Collection[str]]
) -> Catalogue:
    """``catalogue`` of a cluster that has volumes: their level, actions and metrics are available."""
    own = {one.keyword: one for one in VOLUME_ACTIONS}
    measured = {one.name: one for one in (*VOLUME_METRICS, *POOL_METRICS)}
    return replace(
        catalogue,
        levels=tuple(dict.fromkeys((*catalogue.levels, VOLUME))),
        actions={**catalogue.actions, **own},
        metrics={**catalogue.metrics, **measured},
        volumes=volumes,
        volume_names=names,
    )


def with_motifs(catalogue: Catalogue, templates: Mapping[str, ActionInfo]) -> Catalogue:
    """Return ``catalogue`` of a cluster whose daemons expand objects by ``templates`` and measure spaces."""
    own = {one.keyword: _with_choices(one, templates) for one in MOTIF_ACTIONS}
    measured = {one.name: one for one in MOTIF_METRICS}
    return replace(
        catalogue,
        actions={**catalogue.actions, **own},
        metrics={**catalogue.metrics, **measured},
        templates=dict(templates),
    )


def _with_choices(info: ActionInfo, templates: Mapping[str, ActionInfo]) -> ActionInfo:
    parameters = tuple(
        replace(one, choices=tuple(sorted(templates))) if one.name == TEMPLATE else one for one in info.parameters
    )
    return replace(info, parameters=parameters)
