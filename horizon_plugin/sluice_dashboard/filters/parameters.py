"""A form field for each parameter that a filter describes; values are sent as a sentence would have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _

from sluice_dashboard.charts.units import rate, size

#: Begins the names of these fields, since a parameter may be called like a field of the form.
PREFIX: Final = "param_"


def parameter_fields(parameters: Iterable[Mapping[str, Any]]) -> dict[str, forms.Field]:
    """Name of the form's field → the field, in the order of the description."""
    return {PREFIX + one["name"]: _field(one) for one in parameters}


def parameter_values(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were given, by name; what was left empty is the filter's to decide."""
    given = {name: value for name, value in cleaned.items() if name.startswith(PREFIX)}
    return {name.removeprefix(PREFIX): value for name, value in given.items() if value not in (None, "")}


def _field(parameter: Mapping[str, Any]) -> forms.Field:
    given = {"label": parameter["name"], "required": parameter["required"], "help_text": _help(parameter)}
    kind = parameter["type"]
    choices = [True, False] if kind == "bool" else parameter["choices"]
    if choices:
        offered = [(_text(one), _shown(one)) for one in choices]
        return forms.ChoiceField(choices=[("", _("not said")), *offered], **given)
    # where another parameter decides the range, the API knows it
    span = {} if parameter["range_by"] else {"min_value": parameter["minimum"], "max_value": parameter["maximum"]}
    if kind == "int":
        return forms.IntegerField(**span, **given)
    if kind == "float":
        return forms.FloatField(**span, **given)
    return forms.CharField(**given)


def _help(parameter: Mapping[str, Any]) -> str:
    """What it does, what it may be, and what it is when nothing is said."""
    parts = [parameter["help"], _example(parameter["type"]), _range(parameter)]
    parts += [
        _("%(by)s=%(value)s: %(range)s")
        % {"by": parameter["range_by"], "value": one["value"], "range": _span(one, parameter["type"])}
        for one in parameter["ranges"]
    ]
    if parameter["default"] not in (None, ""):
        parts.append(_("default: %s") % _value(parameter["default"], parameter["type"]))
    return "; ".join(filter(None, parts))


def _example(kind: str) -> str:
    examples: dict[str, str] = {
        "size": _("a size such as 64KiB or 10MB"),
        "rate": _("a rate such as 30MBps"),
        "frequency": _("a number per second such as 3"),
        "duration": _("a duration such as 30s, 5min or 2h"),
        "percent": _("a percentage such as 20%"),
        "list": _("words with commas between them"),
    }
    return examples.get(kind, "")


def _range(parameter: Mapping[str, Any]) -> str:
    return "" if parameter["range_by"] else _span(parameter, parameter["type"])


def _span(limits: Mapping[str, Any], kind: str) -> str:
    least, most = (None if one is None else _value(one, kind) for one in (limits["minimum"], limits["maximum"]))
    if least is None and most is None:
        return ""
    if least is None or most is None:
        return str(_("at least %s") % least if most is None else _("at most %s") % most)
    return str(_("%(least)s to %(most)s") % {"least": least, "most": most})


def _value(value: Any, kind: str) -> str:
    """A value in base units for people."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _shown(value)
    shown: dict[str, str] = {
        "size": size(value),
        "rate": rate(value),
        "duration": f"{value:g} s",
        "percent": f"{value * 100:g} %",
        "frequency": f"{value:g}/s",
    }
    return shown.get(kind, f"{value:g}")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(_("yes") if value else _("no"))
    return str(value)
