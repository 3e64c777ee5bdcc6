"""The choices in a page's URL (metrics, targets and time) and the lines of its plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from sluice_client import ApiError, Client
from sluice_dashboard.charts import Plot, Series, TimeRange, mean_series
from sluice_dashboard.names import metric_title

#: Lines of a plot: as many as a reader can distinguish.
LINES: Final = 8
#: Statuses of the API for a target without a plot.
_REFUSALS: Final = (400, 403, 404)


class ChoiceForm(forms.Form):
    """Fields with values from the page's URL; a missing value is the field's ``initial``."""

    def __init__(self, query: Mapping[str, str]) -> None:
        chosen = {name: query.get(name) or field.initial or "" for name, field in self.base_fields.items()}
        super().__init__(chosen, auto_id="choice-%s", label_suffix="")
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control input-sm"
            if isinstance(field.widget, forms.TextInput):
                field.widget.attrs["list"] = "choice-known"

    def value(self, name: str) -> str:
        """The chosen value, even if it is not among the choices."""
        return str(self.data[name]).strip()

    def set_choices(self, name: str, choices: Iterable[tuple[str, str]]) -> None:
        """Set the choices."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = list(choices)


def metric_field(label: Any, initial: str) -> forms.ChoiceField:
    """A field for one of the metrics in the API."""
    wrong = {"invalid_choice": _("There is no metric of this name.")}
    return forms.ChoiceField(label=label, initial=initial, required=False, error_messages=wrong)


def typed_targets(text: str) -> list[str]:
    """Targets as typed, separated by commas; the first :data:`LINES`."""
    return list(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))[:LINES]


def known_targets(client: Client, metric: str, level: str) -> dict[str, str]:
    """Targets of a level with a history of ``metric`` → their labels."""
    found = (one for one in client.metric_series(metric) if one["level"] == level and not one["rest"])
    return {one["target"]: one["label"] or one["target"] for one in found}


def add_refusals(client: Client, form: ChoiceForm, field: str, metric: str, targets: Iterable[str]) -> None:
    """Add an error to ``field`` for each of ``targets`` without a history in the API, with the reason.

    :raises ClientError: if the API is unreachable
    """
    for target in targets:
        try:
            client.metric_history(metric, target, begin="-60")
        except ApiError as error:
            if error.status not in _REFUSALS:
                raise
            form.add_error(field, error.message)


def time_link(query: QueryDict) -> dict[str, Any]:
    """Return whether the page shows a fixed time, and the query of the same page with its time fixed."""
    wanted, fixed = TimeRange.read(query), query.copy()
    for name in ("last", "from", "to"):
        fixed.pop(name, None)
    fixed["from"], fixed["to"] = f"{wanted.begin:.0f}", f"{wanted.end:.0f}"
    return {"is_fixed": "to" in query, "fixed_query": fixed.urlencode()}


def plot_targets(client: Client, metric: str, targets: Mapping[str, str], wanted: TimeRange) -> Plot:
    """A line of ``metric`` for each of ``targets``, which have labels.

    :raises ClientError: if the API is unreachable, or has no such metric
    """
    known = client.metric(metric)
    lines = [_line(client, known, target, label, wanted) for target, label in targets.items()]
    return Plot(lines, begin=wanted.begin, end=wanted.end)


def plot_metrics(client: Client, metrics: Iterable[str], target: str, wanted: TimeRange) -> Plot:
    """A line of ``target`` for each of ``metrics``, which have the same unit.

    :raises ClientError: if the API is unreachable, or lacks one of them
    """
    known = [client.metric(metric) for metric in metrics]
    lines = [_line(client, one, target, metric_title(one["name"]), wanted) for one in known]
    return Plot(lines, begin=wanted.begin, end=wanted.end)


def _line(client: Client, metric: Mapping[str, Any], target: str, label: str, wanted: TimeRange) -> Series:
    line = mean_series(client, metric["name"], target, wanted, label, metric["unit"])
    if line.unit != "fraction":
        return line
    # shares are shown in percent
    return Series(label, "percent", [(at, None if value is None else 100 * value) for at, value in line.points])
