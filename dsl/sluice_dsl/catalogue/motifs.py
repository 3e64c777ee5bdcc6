"""What a catalogue of a cluster with motifs has beside that of one without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sluice_core.describe import ActionInfo
from sluice_dsl.catalogue.base import Catalogue
from sluice_motif_control.actions import MOTIF_ACTIONS, TEMPLATE
from sluice_motif_control.metrics import MOTIF_METRICS


def with_motifs(catalogue: Catalogue, templates: Mapping[str, ActionInfo]) -> Catalogue:
    """``catalogue`` where daemons make objects again, by ``templates``, and spaces are measured."""
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
