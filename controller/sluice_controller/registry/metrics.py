"""Metrics in the registry: of installed plugins, uploaded, and published by other services.

A published metric is registered once its batches arrive on the metrics exchange under ``location``, in the form of
``MetricBatch``; actors then follow it like any other metric.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog import entries, reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import RecordKind, StoredRecord
from sluice_controller.catalog.vocabulary_index import metric_info
from sluice_controller.code import metrics
from sluice_controller.errors import check_version
from sluice_controller.registry import takeovers
from sluice_controller.validation import names
from sluice_controller.validation.bodies import Body
from sluice_core.connections.exchanges import METRICS_EXCHANGE, metric_routing_key
from sluice_core.describe import MetricInfo
from sluice_core.errors import CallerError, Conflict
from sluice_core.messages.registry import ALIAS, METRIC_ENTRY, TERM, Metric
from sluice_core.messages.uploads import Upload
from sluice_dsl.syntax.units import METRIC_QUANTITIES
from sluice_metrics.native import metric_info as uploaded_info

FIELDS: Final = ("name", "unit", "type", "granularities", "period", "help", "location")
UNITS: Final = tuple(METRIC_QUANTITIES)
TYPES: Final = ("gauge", "counter", "rate")
GRANULARITIES: Final = ("object", "container", "tenant", "cluster", "node")
LONGEST_PERIOD: Final = 3600.0
_name = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class RegisteredMetric:
    """A metric in the registry; ``registered`` if it was registered by the API, ``upload`` if its code was uploaded."""

    info: MetricInfo
    type: str
    location: str
    registered: bool
    version: int = 0
    upload: Upload | None = None


def list_all(backend: Backend) -> dict[str, RegisteredMetric]:
    """All metrics by name."""
    contents = backend.policy_cache.contents()
    return {
        **{name: uploaded_metric(one) for name, one in metrics.uploaded_metrics(contents).items()},
        **{name: _of_registered(one) for name, one in _METRICS.list_all(backend).items()},
        **{name: _of_plugin(one) for name, one in backend.built_in.metrics.items()},
    }


def find(backend: Backend, name: str, expected: int | None = None) -> RegisteredMetric:
    """One metric, by its name or an alias that its plugin declares.

    :raises NotFound: when there is none
    """
    native = backend.built_in.metric(name)
    if native is not None:
        check_version(f"metric `{native.name}`", 0, expected)
        return _of_plugin(native)
    if name.upper() in metrics.uploaded_metrics(backend.policy_cache.contents()):
        found = metrics.find(backend, name, expected)
        return uploaded_metric(found.upload, found.version)
    return _of_registered(_registered(backend, name, expected))


def create(backend: Backend, data: Any, by: str) -> RegisteredMetric:
    """Register a metric.

    :raises Conflict: when the name is taken
    """
    body = Body(data, *FIELDS)
    name = names.new_name(body.text("name")).upper()
    if not _name.fullmatch(name):
        raise CallerError(f"`{name}` cannot be part of a routing key, expected letters, digits and `_`")
    names.refuse_clash(name, names.condition_meanings(name, backend.catalogue))
    names.refuse_clash(name, {"an uploaded metric": name in metrics.uploaded_metrics(backend.policy_cache.contents())})
    return _of_registered(entries.create(backend, _described(Metric(name), body), by, (ALIAS, TERM)))


def update(backend: Backend, name: str, data: Any, by: str, expected: int | None = None) -> RegisteredMetric:
    """Change the description of a registered metric; fields that are not given stay.

    :raises Conflict: for a plugin's metric, or when the unit or a level in the condition of a policy would change
    """
    body = Body(data, *FIELDS)

    def revise(old: Metric) -> Metric:
        if body.text("name", name).upper() != old.name:
            raise CallerError(f"`name` is `{body.text('name')}`, but a metric keeps its name `{old.name}`")
        new = _described(old, body)
        if new.unit != old.unit or not set(old.granularities) <= set(new.granularities):
            watching = reference_guards.policies_watching(backend.policy_cache.contents(), old.name)
            reference_guards.refuse_used(f"metric `{old.name}`", watching, False)
        return new

    return _of_registered(_METRICS.update(backend, name.upper(), by, revise, expected=expected))


def delete(backend: Backend, name: str, by: str, force: bool, expected: int | None = None) -> None:
    """Delete a registered or uploaded metric; policies do not use one that a built-in has taken over.

    :raises Conflict: when policies watch it or aliases stand for it, unless ``force``
    """
    taken_over = takeovers.is_taken_over(takeovers.METRIC, name.upper(), backend)
    if name.upper() in metrics.uploaded_metrics(backend.policy_cache.contents()):
        metrics.delete(backend, name, by, force or taken_over, expected)
        return
    if taken_over:
        _METRICS.drop(backend, _METRICS.find(backend, name.upper(), expected), by)
        return
    _METRICS.delete(backend, name.upper(), by, force, expected)


def _registered(backend: Backend, name: str, expected: int | None) -> StoredRecord[Metric]:
    name = name.upper()
    if backend.built_in.metric(name) is not None:
        raise Conflict(f"metric `{name}` is an installed plugin's and cannot be changed here")
    if name in metrics.uploaded_metrics(backend.policy_cache.contents()):
        raise Conflict(f"metric `{name}` is uploaded code, which contains its description: upload another revision")
    return _METRICS.find(backend, name, expected)


class _MetricKind(RecordKind[Metric]):
    def refuse_used(self, backend: Backend, record: Metric, force: bool) -> None:
        super().refuse_used(backend, record, force)
        name, known = record.name, backend.policy_cache.contents().vocabulary.metrics
        aliases = [f"`{alias}`" for alias, one in known.items() if one.metric == name]
        if aliases and not force:
            stand = f"aliases {', '.join(aliases)} stand for metric `{name}`"
            raise reference_guards.InUse(f"{stand}, delete them or use `force`")


_METRICS: Final = _MetricKind(
    Metric,
    METRIC_ENTRY,
    "metric",
    lambda contents, metric: reference_guards.policies_watching(contents, metric.name),
    _registered,
)


def _described(old: Metric, body: Body) -> Metric:
    levels = body.texts("granularities", old.granularities)
    strangers = [one for one in levels if one not in GRANULARITIES]
    if strangers or not levels:
        found = f"`{strangers[0]}`" if strangers else "nothing"
        raise CallerError(f"`granularities` holds {found}, expected some of {', '.join(GRANULARITIES)}")
    return replace(
        old,
        unit=body.one_of("unit", UNITS, old.unit),
        type=body.one_of("type", TYPES, old.type),
        granularities=tuple(dict.fromkeys(levels)),
        period=body.number("period", old.period, 1.0, LONGEST_PERIOD),
        help=body.text("help", old.help),
        location=body.text("location", old.location or _location(old.name)),
    )


def _location(name: str) -> str:
    return f"{METRICS_EXCHANGE}/{metric_routing_key(name, '*')}"


def _of_registered(found: StoredRecord[Metric]) -> RegisteredMetric:
    one = found.record
    return RegisteredMetric(metric_info(one), one.type, one.location or _location(one.name), True, found.version)


def uploaded_metric(upload: Upload, version: int = 0) -> RegisteredMetric:
    """An uploaded metric."""
    info = uploaded_info(upload)
    return RegisteredMetric(info, _type(info), _location(info.name), False, version, upload)


def _of_plugin(info: MetricInfo) -> RegisteredMetric:
    return RegisteredMetric(info, _type(info), _location(info.name), False)


def _type(info: MetricInfo) -> str:
    return "rate" if info.unit.endswith("per_second") else "gauge"
