"""``{% load sluice %}``: permissions, values with units, links to panels, and plots."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django import template
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from sluice_dashboard import api
from sluice_dashboard.charts import RANGES, STEPS, TimeRange, quantity, rate, size

register = template.Library()
register.filter(quantity)
register.filter(rate)
register.filter(size)

_RANGE_NAMES: Final = (
    _("10 minutes"),
    _("1 hour"),
    _("6 hours"),
    _("24 hours"),
    _("7 days"),
)


@register.simple_tag(takes_context=True)
def permitted(context: template.Context, operation: str, target: str | None = None, **about: str) -> bool:
    """``{% permitted "policies:create" as may_create %}``: whether the API permits that operation.

    :param target: by default the page's
    :param about: ``policy``, an id, in place of a target; the ``filter`` that is set; the ``stereotype``
    """
    if target is None:
        target = "" if about else context.get("target", "")
    return api.permissions(context["request"], target, **about).allow(operation)


@register.simple_tag
def panel_url(panel: str, dashboard: str = "sluice", view: str = "index") -> str:
    """The URL of a panel; empty if that panel is not installed."""
    try:
        return str(reverse(f"horizon:{dashboard}:{panel}:{view}"))
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def panel_page(context: template.Context, view: str, *args: Any) -> str:
    """``{% panel_page "detail" policy.id %}``: the URL of a view of the current panel; empty if there is none."""
    try:
        return url_in_panel(context["request"], view, *args)
    except NoReverseMatch:  # a name that no URL can contain
        return ""


@register.simple_tag(takes_context=True)
def sibling_page(context: template.Context, panel: str, view: str, *args: Any) -> str:
    """``{% sibling_page "policies" "detail" policy.id %}``: the URL of a view of another panel of the dashboard that is
    shown, empty where that panel is not installed.
    """
    return panel_link(context["request"], panel, view=view, args=args)


def panel_link(request: HttpRequest, panel: str, query: str = "", view: str = "index", args: Sequence[Any] = ()) -> str:
    """The URL of a view of another panel of the dashboard of ``request``; empty if it is not installed."""
    dashboard = request.resolver_match.namespace.rpartition(":")[0]
    try:
        return f"{reverse(f'{dashboard}:{panel}:{view}', args=args)}{query}"
    except NoReverseMatch:
        return ""


def url_in_panel(request: HttpRequest, view: str, *args: Any) -> str:
    """The URL of a view of the panel of ``request``."""
    return str(reverse(f"{request.resolver_match.namespace}:{view}", args=args))


@register.filter
def moment(value: float | str | None) -> datetime | None:
    """A time of the API, unix seconds or ISO 8601, for Django's ``date`` and ``timesince``."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    return datetime.fromtimestamp(value, UTC)


@register.inclusion_tag("sluice_dashboard/_plot.html", takes_context=True)
def plot(context: template.Context, url: str, title: str, group: str = "", seconds: int = 10) -> dict[str, Any]:
    """``{% plot url title group %}``: the plot of a :class:`~sluice_dashboard.views.PlotView` at ``url``.

    It has the page's time range.  Plots with the same ``group`` share their time axis.
    """
    asked = context["request"].GET
    query = asked.urlencode()
    seconds = 0 if "to" in asked else seconds  # a past range does not change
    mark = "&" if "?" in url else "?"
    return {"url": f"{url}{mark}{query}", "title": title, "group": group, "seconds": seconds}


@register.inclusion_tag("sluice_dashboard/_time_range.html", takes_context=True)
def time_range(context: template.Context) -> dict[str, Any]:
    """``{% time_range %}``: a form for range and step of all plots of the page; both are in its URL.

    A time that the URL fixes, ``from`` and ``to``, stays until the user follows the present again.
    """
    return _time_choices(context)


@register.inclusion_tag("sluice_dashboard/_time_range_fields.html", takes_context=True)
def time_range_fields(context: template.Context) -> dict[str, Any]:
    """``{% time_range_fields %}``: the same as fields, for a form with more choices."""
    return _time_choices(context)


def _time_choices(context: template.Context) -> dict[str, Any]:
    asked = context["request"].GET
    ours = ("last", "step", "from", "to")
    wanted, following = TimeRange.read(asked), asked.copy()
    for name in ("from", "to"):
        following.pop(name, None)
    return {
        "is_fixed": "to" in asked,
        "begin": round(wanted.begin),
        "end": round(wanted.end),
        "following": following.urlencode(),
        "ranges": [(str(one), name) for one, name in zip(RANGES, _RANGE_NAMES, strict=True)],
        "steps": [(str(one), gettext("as fine as fits") if one == 0 else gettext("%d s") % one) for one in STEPS],
        "last": asked.get("last", str(RANGES[0])),
        "step": asked.get("step", "0"),
        "others": [(name, value) for name in asked if name not in ours for value in asked.getlist(name)],
    }
