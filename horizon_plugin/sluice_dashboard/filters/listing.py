"""The list of filters that can be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from sluice_client import Client
from sluice_dashboard import api


def fetch_filters(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """All filters by keyword."""
    return {
        "filters": client.filters(),
        "may_show": api.permissions(request).allow("filters:show"),
    }
