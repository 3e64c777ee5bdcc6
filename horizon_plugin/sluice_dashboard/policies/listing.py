"""The list of policies: filtered by tenant, state and word, in pages, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_dashboard.names import FIRINGS, POLICY_STATES, name_of
from sluice_dashboard.views import PageView, Section

#: Policies on a page.
PAGE: Final = 50
#: Parameters of the page's URL that filter policies, and those that select the page.
_FILTERS: Final = ("text", "tenant", "state")
_PLACES: Final = ("marker", "before")


def asked(query: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """The values of ``names`` in ``query`` of a page's URL, without empty ones."""
    return {name: query[name].strip() for name in names if query.get(name, "").strip()}


def policy_row(policy: Mapping[str, Any]) -> dict[str, Any]:
    """A policy of the API as a line of the table."""
    enforced, last = policy["enforced"], (policy["firings"] or [None])[-1]
    return {
        "id": policy["id"],
        "sentence": policy["source"],
        "state": policy["state"],
        "state_name": name_of(POLICY_STATES, policy["state"]),
        "reason": policy["reason"],
        "enabled": policy["enabled"],
        "enforced": f"{enforced['nodes']}/{enforced['total']}",
        "everywhere": enforced["nodes"] == enforced["total"],
        "refused": [one["node"] for one in enforced["refused"]],
        "fired_at": last["at"] if last else None,
        "fired": name_of(FIRINGS, last["what"]) if last else "",
    }


def fetch_page(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return one page of policies, and the queries of the previous and next page."""
    filters = asked(request.GET, _FILTERS)
    answer = client.policy_page(limit=PAGE, order="newest", **filters, **asked(request.GET, _PLACES))
    beside = {"newer": ("before", answer["previous_marker"]), "older": ("marker", answer["next_marker"])}
    return {
        "rows": [policy_row(one) for one in answer["policies"]],
        "total": answer["total"],
        "filtered": bool(filters),
        **{name: urlencode({**filters, place: at}) if at else "" for name, (place, at) in beside.items()},
    }


class IndexView(PageView):
    """The list; ``changed`` in its URL is a policy that was just changed, and may have been deleted."""

    page_title = _("Policies")
    template_name = "sluice_dashboard/policies/index.html"
    sections = {"list": Section("sluice_dashboard/policies/_list.html", fetch_page, seconds=5)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        return {
            **context,
            "filters": {name: self.request.GET.get(name, "") for name in _FILTERS},
            "states": POLICY_STATES.items(),
            "changed": self.request.GET.get("changed", ""),
        }
