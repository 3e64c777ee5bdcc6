"""The location of an object or a volume, and the storage policy of new containers of tenants."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import ApiError, Client
from sluice_dashboard import api
from sluice_dashboard.views import PageView, Section

_PLACEMENTS: Final = 200


def fetch_found(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return the location of the resource in the URL; an error of the API takes its place."""
    volume = request.GET.get("volume", "").strip()
    path = [request.GET.get(name, "") for name in ("account", "container", "object")]
    asked = {"asked": volume or "/".join(path)}
    try:
        if volume:
            return {**asked, "volume": client.volume_locality(volume)}
        if all(path):
            return {**asked, "object": client.locality(*path)}
    except ApiError as error:
        if error.status == 401 or error.status >= 500:
            raise
        return {**asked, "refusal": api.failure_of(error)}
    return {"incomplete": any(path)}


def fetch_placements(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return the placements of new containers."""
    return {"placements": list(islice(client.collection("/placements").list(limit=_PLACEMENTS), _PLACEMENTS))}


class LocalityView(PageView):
    """Two forms, and the known locations."""

    page_title = _("Where data lie")
    template_name = "sluice_dashboard/changes/locality.html"
    sections = {
        "found": Section("sluice_dashboard/changes/_found.html", fetch_found, seconds=30),
        "placements": Section("sluice_dashboard/changes/_placements.html", fetch_placements, seconds=30),
    }
