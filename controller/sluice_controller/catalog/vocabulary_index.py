"""The words that registry entries add to the catalogue for the check of sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from sluice_core.describe import ActionInfo, MetricInfo, Scalar
from sluice_core.errors import DecodeError
from sluice_core.messages import registry
from sluice_core.messages.policies import CONTAINER, NAME, OBJECT, TENANT, VOLUME, Entry, Target
from sluice_dsl.catalogue.base import ActionAlias, Catalogue, MetricAlias

#: Number of slashes in a path → its level; an object's name may contain more.
_LEVELS: Final = (TENANT, CONTAINER, OBJECT)


@dataclass(frozen=True, slots=True)
class VocabularyIndex:
    """The words of all entries at one moment, by kind."""

    groups: Mapping[str, str] = field(default_factory=dict)
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    actions: Mapping[str, ActionAlias] = field(default_factory=dict)
    metrics: Mapping[str, MetricAlias] = field(default_factory=dict)
    measured: Mapping[str, MetricInfo] = field(default_factory=dict)
    services: Mapping[str, ActionInfo] = field(default_factory=dict)

    @classmethod
    def from_entries(cls, entries: Mapping[str, Entry]) -> Self:
        """Build the index; entries that are not valid are left out."""
        aliases = registry.named_records(entries, registry.Alias)
        return cls(
            groups={name: one.level for name, one in registry.named_records(entries, registry.Group).items()},
            terms={name: one.values for name, one in registry.named_records(entries, registry.Term).items()},
            targets={name: _target(one) for name, one in aliases.items() if one.of == registry.TARGET},
            actions={
                name: ActionAlias(one.text, {key: parameter_text(value) for key, value in one.params.items()})
                for name, one in aliases.items()
                if one.of == registry.FILTER
            },
            metrics={
                name: MetricAlias(one.text, one.level) for name, one in aliases.items() if one.of == registry.METRIC
            },
            measured={name: metric_info(one) for name, one in registry.named_records(entries, registry.Metric).items()},
            services=_services(registry.named_records(entries, registry.Activation)),
        )

    def extend(self, catalogue: Catalogue) -> Catalogue:
        """``catalogue`` with these words; its own words are not replaced."""
        return replace(
            catalogue,
            groups={**self.groups, **catalogue.groups},
            terms={**self.terms, **catalogue.terms},
            actions={**self.services, **catalogue.actions},
            aliases={**self.targets, **catalogue.aliases},
            metrics={**self.measured, **catalogue.metrics},
            actions_by_alias={**self.actions, **catalogue.actions_by_alias},
            metrics_by_alias={**self.metrics, **catalogue.metrics_by_alias},
        )


def _services(activations: Mapping[str, registry.Activation]) -> dict[str, ActionInfo]:
    """The filters of third parties; those that are not valid are left out."""
    services = {}
    for name, activation in activations.items():
        if activation.service:
            with contextlib.suppress(DecodeError):
                services[name] = activation.info()
    return services


def _target(alias: registry.Alias) -> Target:
    return Target(VOLUME, NAME, alias.text) if alias.level == VOLUME else path_target(alias.text)


def path_target(path: str) -> Target:
    """The target of the path ``account[/container[/object]]``."""
    return Target(_LEVELS[min(path.count("/"), 2)], NAME, path)


def metric_info(metric: registry.Metric) -> MetricInfo:
    """A registered metric in the form for the language."""
    return MetricInfo(metric.name, metric.unit, metric.help, metric.granularities, metric.period)


def parameter_text(value: Scalar | Any) -> str:
    """A parameter's value in the form of a sentence."""
    return str(value).lower() if isinstance(value, bool) else str(value)
