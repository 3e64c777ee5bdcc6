"""A vocabulary for tests: every known word available, and one name of each sort."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sluice_core.describe import ActionInfo, MetricInfo, Parameter
from sluice_core.messages.policies import Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.catalogue.extensions import VolumeIndex, with_volumes
from sluice_dsl.catalogue.vocabulary import default_catalogue
from sluice_volumes.messages import VolumeRecord

#: A filter that needs whole objects, and one whose parameters have all types.
EXTRA_ACTIONS: Final = (
    ActionInfo("thumbnail", "filter", "a filter of whole objects", stage=200, needs_whole_object=True,
               places=("proxy", "storage_node")),
    ActionInfo("sampler", "filter", "every parameter type", (
        Parameter("mode", "str", "a required choice", choices=("fast", "Good"), required=True),
        Parameter("share", "percent", "a fraction", minimum=0.0, maximum=0.5),
        Parameter("every", "duration", "a period", minimum=1.0),
        Parameter("rate", "rate", "a rate"),
        Parameter("keep", "size", "a size", maximum=1000.0),
        Parameter("count", "int", "a number"),
        Parameter("factor", "float", "a number"),
        Parameter("strict", "bool", "a switch"),
        Parameter("tags", "list", "words"),
        Parameter("note", "str", "free text"),
    ), stage=400, places=("proxy", "storage_node")),
)  # fmt: skip

#: One metric of each unit; ``LATENCY`` is not measured per cluster.
EXTRA_METRICS: Final = (
    MetricInfo("LATENCY", "seconds", "mean time to first byte", ("tenant", "container"), aliases=("DELAY",)),
)


#: A volume with a unique name, and two that share theirs.
VOLUMES: Final = (
    VolumeRecord("id-1", "acme", "AUTH_acme", "data1"),
    VolumeRecord("id-2", "acme", "AUTH_acme", "backup"),
    VolumeRecord("id-3", "beta", "AUTH_beta", "backup"),
)


def make_catalogue(**changes: object) -> Catalogue:
    """The default catalogue with everything available, extended; ``changes`` replace its fields."""
    known = default_catalogue()
    actions = {name: replace(info, available=True) for name, info in known.actions.items()}
    wide = Catalogue(
        actions=actions | {info.keyword: info for info in EXTRA_ACTIONS},
        metrics={**known.metrics, **{info.name: info for info in EXTRA_METRICS}},
        terms=known.terms,
        aliases={"C1": Target("container", "name", "AUTH_acme/logs"), "LAB": Target("tenant", "name", "AUTH_lab")},
        groups={"gold": "tenant", "archive": "container", "videos": "object", "disks": "volume"},
        tenants={"acme": "AUTH_acme", "beta": "AUTH_beta"},
    )
    index = VolumeIndex(VOLUMES)
    whole = with_volumes(wide, lambda name: index.find(name, wide.account), index.names)
    return replace(whole, **changes)  # type: ignore[arg-type]
