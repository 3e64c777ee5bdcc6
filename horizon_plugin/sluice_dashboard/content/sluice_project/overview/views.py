"""The overview of a project: lists of the API hold what is the project's alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard import summary
from sluice_dashboard.views import PageView, Section


def fetch_state(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """A card for each question."""
    return {"cards": summary.cards(client, "sluice_project")}


def fetch_events(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """What happened last to the project's policies."""
    return {"events": summary.recent_events(client)}


class IndexView(PageView):
    """Whether all is well."""

    page_title = _("Overview")
    template_name = "sluice_project/overview/index.html"
    sections = {
        "state": Section("sluice_dashboard/_cards.html", fetch_state, seconds=5),
        "events": Section("sluice_dashboard/_events.html", fetch_events, seconds=5),
    }
