"""The words of sentences: keywords with their parameters, attributes, units, metrics; and the kinds of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from docs.generated.markdown import escaped, page, table

from sluice_core.describe import REQUEST_ATTRIBUTES, ActionInfo, MetricInfo, Parameter
from sluice_core.messages.events import KINDS
from sluice_core.metrics.node_metrics import NODE_METRICS
from sluice_core.metrics.usage_metrics import USAGE_METRICS
from sluice_dsl.catalogue.builtin_words import BUILTIN_METRICS, BUILTIN_TEMPLATES
from sluice_dsl.catalogue.vocabulary import TERMS, default_catalogue
from sluice_dsl.syntax.keywords import RESERVED
from sluice_dsl.syntax.units import format_value
from sluice_volumes.metrics import POOL_METRICS, VOLUME_METRICS

_UNITS: Final = {
    "per_second": "per second",
    "bytes_per_second": "bytes per second",
    "fraction": "percent",
    "seconds": "time",
}


def pages() -> dict[str, str]:
    """The page of all words of the language."""
    actions = default_catalogue().actions
    kinds: dict[str, list[ActionInfo]] = {}
    for keyword in sorted(actions):
        kinds.setdefault(actions[keyword].kind, []).append(actions[keyword])
    return {
        "keywords.md": page(
            "Words of the language",
            "[The language](language.md) says how sentences are made of them. An administrator may "
            "[upload](../admin/code.md) and [register](../admin/registry.md) more; `GET /filters` and `GET /registry` "
            "list those of a cluster.",
            "## Reserved words",
            "They are read in any case and must be quoted as names: " + ", ".join(f"`{one}`" for one in RESERVED) + ".",
            "## Attributes of requests",
            table(
                ("attribute", "type", "meaning"), [(f"`{a.name}`", a.type, escaped(a.help)) for a in REQUEST_ATTRIBUTES]
            ),
            "## Terms",
            table(("term", "stands for"), [(f"`{name}`", ", ".join(f"`{t}`" for t in TERMS[name])) for name in TERMS]),
            *(part for kind in sorted(kinds) for part in _keywords(f"## Keywords of kind {kind}", kinds[kind])),
            *_keywords("## Templates of motifs", BUILTIN_TEMPLATES),
        )
    }


def parts() -> dict[str, str]:
    """The tables of metrics and of events."""
    events = [(f"`{kind}`", severity, escaped(text)) for kind, (severity, text) in KINDS.items()]
    return {
        "metrics-workload": _metrics(BUILTIN_METRICS),
        "metrics-stored": _metrics(USAGE_METRICS),
        "metrics-nodes": _metrics(one.info for one in NODE_METRICS),
        "metrics-volumes": _metrics((*VOLUME_METRICS, *POOL_METRICS)),
        "events": table(("kind", "severity", "what happened"), events),
    }


def _metrics(metrics: Iterable[MetricInfo]) -> str:
    rows = []
    for one in metrics:
        names = ", ".join(f"`{name}`" for name in (one.name, *one.aliases))
        levels = ", ".join(level.replace("_", " ") for level in one.granularities)
        rows.append((names, _UNITS.get(one.unit, one.unit), levels, escaped(one.help)))
    return table(("metric", "unit", "levels", "meaning"), rows)


def _keywords(heading: str, actions: Iterable[ActionInfo]) -> Iterator[str]:
    yield heading
    for one in actions:
        yield f"### {one.keyword}"
        yield f"{escaped(one.help)[:1].upper()}{escaped(one.help)[1:]}."
        yield "- " + "\n- ".join(_properties(one))
        if one.parameters:
            rows = [(f"`{each.name}`", each.type, _allowed(each), escaped(each.help)) for each in one.parameters]
            yield table(("parameter", "type", "values", "meaning"), rows)


def _properties(action: ActionInfo) -> Iterator[str]:
    """Its purpose, its places, and its effects on objects."""
    yield f"About {' and '.join(action.about)}."
    places = [f"`{one.upper()}`" for one in action.places]
    if action.kind == "filter":
        without = f" (without ON: `{action.default_place.upper()}`)" if len(places) > 1 else ""
        yield f"Runs ON {' or '.join(places)}{without}; stage {action.stage}."
    traits = {
        "changes what is stored": action.changes_content and action.on_put,
        "changes what is read": action.on_get,
        "is undone when objects are read": action.reversible,
        "needs the whole object": action.needs_whole_object,
        "is inherited by narrower scopes until a DELETE names it": action.protective,
    }
    if any(traits.values()):
        yield "It " + ", ".join(name for name, has in traits.items() if has) + "."
    if action.on_request:
        yield f"Accompanies requests: {', '.join(action.methods) or 'of any method'}."


def _allowed(parameter: Parameter) -> str:
    """Choices or range, and the default."""
    said = []
    if parameter.choices:
        said.append(", ".join(f"`{one}`" for one in parameter.choices))
    bounds = (("at least", parameter.minimum), ("at most", parameter.maximum))
    said += [f"{name} {format_value(value, parameter.type)}" for name, value in bounds if value is not None]
    if parameter.required:
        said.append("required")
    elif parameter.default is not None:
        default = format_value(parameter.default, parameter.type)
        said.append(f"default `{default}`" if default else "default empty")
    return "; ".join(said)
