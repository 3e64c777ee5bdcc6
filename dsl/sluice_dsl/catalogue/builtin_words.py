"""Built-in filters, metrics and templates of motifs as they describe themselves, for processes without them installed.

The language may import none of them, so ``builtin_words.json`` is a copy, made by `tools/builtin-words`; a test of
each room compares both.  The file has ``actions`` and ``metrics`` as a catalogue file has them (``offline``),
and ``templates``, which are described like actions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, Final

from sluice_core.describe import ActionInfo, MetricInfo, Parameter


def read_actions(data: Iterable[Mapping[str, Any]]) -> list[ActionInfo]:
    """Return the actions of a catalogue file, each described by its fields other than defaults.

    :raises TypeError: for unknown and for missing fields of an action or a parameter
    """
    actions = []
    for one in data:
        parameters = tuple(map(Parameter.from_data, one.get("parameters", ())))
        actions.append(ActionInfo(**_freeze_lists({**one, "parameters": parameters})))
    return actions


def read_metrics(data: Iterable[Mapping[str, Any]]) -> list[MetricInfo]:
    """Return the metrics of a catalogue file.

    :raises TypeError: for unknown and for missing fields of a metric
    """
    return [MetricInfo(**_freeze_lists(one)) for one in data]


def _freeze_lists(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON ``data`` with tuples in the place of its lists, as descriptions have them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


_WORDS: Final = json.loads(resources.files("sluice_dsl.catalogue").joinpath("builtin_words.json").read_text("utf-8"))
#: In the order of their stages.
BUILTIN_FILTERS: Final = tuple(read_actions(_WORDS["actions"]))
#: Those that proxies and storage nodes count; metrics of agents are in ``sluice_core.metrics.usage_metrics``.
BUILTIN_METRICS: Final = tuple(read_metrics(_WORDS["metrics"]))
BUILTIN_TEMPLATES: Final = tuple(read_actions(_WORDS["templates"]))
