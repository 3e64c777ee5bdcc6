"""The lists of what is registered, one for each kind, as tabs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import api
from sluice_dashboard.registry.kinds import KINDS, Kind
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import PageView, Section

#: Things on a page.
PAGE: Final = 50


def shown_kinds(request: HttpRequest) -> list[Kind]:
    """Those that the user may list; all while that is not known."""
    known = api.permissions(request)
    return [one for one in KINDS.values() if known.allow(one.rule("list"))]


def first_kind(request: HttpRequest) -> Kind:
    """The one that is shown at first."""
    return next(iter(shown_kinds(request)), KINDS["terms"])


def entry_row(kind: Kind, entry: Mapping[str, Any]) -> dict[str, Any]:
    """What a line of a list shows; what came with the software has no buttons."""
    return {
        "name": entry[kind.key],
        "cells": [cell(entry) for _title, cell in kind.columns],
        "builtin": entry.get("builtin", False),
    }


def fetch_page(client: Client, request: HttpRequest, kind: str = "") -> Mapping[str, Any]:
    """One page of things, by name."""
    shown = KINDS[kind] if kind else first_kind(request)
    query = {name: request.GET.get(name, "").strip() for name in ("prefix", "marker")}
    found = client.get(shown.path, limit=PAGE, **query)
    following = found["next_marker"]
    return {
        "kind": shown,
        "update_rule": shown.rule("update"),
        "delete_rule": shown.rule("delete"),
        "rows": [entry_row(shown, one) for one in found[shown.slug]],
        "titles": [title for title, _cell in shown.columns],
        "first": bool(query["marker"]),
        "start": urlencode({"prefix": query["prefix"]}),
        "following": urlencode({"prefix": query["prefix"], "marker": following}) if following else "",
    }


class ListView(PageView):
    """Things of one kind; ``kind`` comes from the URL, else it is the first one that may be seen."""

    page_title = _("Registry")
    template_name = "sluice_dashboard/registry/index.html"
    sections = {"list": Section("sluice_dashboard/registry/_list.html", fetch_page, seconds=10)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        slug = self.kwargs.get("kind", "")
        kind = KINDS[slug] if slug else first_kind(self.request)
        tabs = [
            {"title": one.title, "url": url_in_panel(self.request, "list", one.slug), "active": one == kind}
            for one in shown_kinds(self.request)
        ]
        return {
            **super().get_context_data(**kwargs),
            "kind": kind,
            "tabs": tabs,
            "prefix": self.request.GET.get("prefix", ""),
            "create_rule": kind.rule("create"),
        }
