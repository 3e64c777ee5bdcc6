"""Changes in words, with their authors, and the rollback with its plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.views import ActionView, PageView, Section, next_query_like, shown_failure

#: Resources of each kind that a change names before it counts the rest.
_NAMED: Final = 3

_KINDS: Final = {
    "policies": _("policy %s"),
    "filters": _("filter %s"),
    "metrics": _("metric %s"),
    "controllers": _("controller %s"),
    "entries": _("registry: %s"),
}
_WHATS: Final = {
    "policy": _("policy"),
    "filter": _("filter"),
    "metric": _("metric"),
    "controller": _("controller"),
    "dependency": _("dependency"),
    "entry": _("registry entry"),
}
_HOWS: Final = {
    "create": _("created"),
    "replace": _("changed"),
    "delete": _("deleted"),
}
_PAGE: Final = 50
#: Differences on a page.
_SHOWN: Final = 200
FILTERS: Final = ("policy", "by", "since")


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change as a line of the list; ``about`` are the resources that it names."""

    change: Mapping[str, Any]
    about: tuple[str, ...]
    assignments: str


def change_row(change: Mapping[str, Any]) -> ChangeRow:
    """Convert ``change`` of the API into words."""
    about = []
    for kind, text in _KINDS.items():
        names = change[kind]
        about += [str(text) % name for name in names[:_NAMED]]
        if len(names) > _NAMED:
            about.append(gettext("and %d more") % (len(names) - _NAMED))
    counts = []
    if change["set"]:
        counts.append(ngettext("%d assignment set", "%d assignments set", change["set"]) % change["set"])
    if change["taken_back"]:
        number = change["taken_back"]
        counts.append(ngettext("%d taken back", "%d taken back", number) % number)
    return ChangeRow(change, tuple(about), ", ".join(counts))


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A changed resource; ``before`` and ``after`` are texts, empty where it did not exist."""

    what: str
    name: str
    how: str
    before: str
    after: str


def difference_row(difference: Mapping[str, Any]) -> DifferenceRow:
    """Convert ``difference`` of the API into words."""
    what, how = difference["what"], difference["how"]
    return DifferenceRow(
        str(_WHATS.get(what, what)),
        difference["name"],
        str(_HOWS.get(how, how)),
        document_text(difference["before"]),
        document_text(difference["after"]),
    )


def document_text(document: Mapping[str, Any] | None) -> str:
    """A policy's sentence, or the document as JSON."""
    if document is None:
        return ""
    if "policy" in document:
        text = str(document["policy"])
        return text if document.get("enabled", True) else gettext("%s (disabled)") % text
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


def fetch_changes(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """Return one page of changes; ``next`` is the query of the following one."""
    wanted = {name: request.GET.get(name, "") for name in FILTERS}
    page = client.get("/changes", **wanted, marker=request.GET.get("marker", ""), limit=_PAGE)
    return {
        "rows": [change_row(one) for one in page["changes"]],
        "newest": page["head"]["epoch"],
        "oldest": page["oldest"] if page["trimmed"] else None,
        "next": next_query_like(request.GET, page["next_marker"]),
    }


class IndexView(PageView):
    """All stored changes, newest first."""

    page_title = _("Changes and locality")
    template_name = "sluice_dashboard/changes/index.html"
    sections = {"changes": Section("sluice_dashboard/changes/_changes.html", fetch_changes, seconds=5)}


class ChangeView(PageView):
    """One change, with the state that it replaced."""

    page_title = _("Change")
    template_name = "sluice_dashboard/changes/detail.html"

    def fetch(self, client: Client) -> Mapping[str, Any]:
        change = client.change(self.kwargs["epoch"])
        known = change["differences"]
        return {
            "row": change_row(change),
            "before": change["epoch"] - 1,
            "differences": None if known is None else [difference_row(one) for one in known[:_SHOWN]],
            "more": max(0, len(known or ()) - _SHOWN),
            "assignments": change["assignments"][:_SHOWN],
        }


class RollBackForm(forms.Form):
    """The state for which the plan was made."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    force = forms.BooleanField(widget=forms.HiddenInput, required=False)


class RollBackView(ActionView):
    """Roll back to the state after a change: the plan, and a button that performs exactly this plan."""

    form_class = RollBackForm
    page_title = _("Roll back")
    template_name = "sluice_dashboard/changes/rollback.html"
    submit_label = _("Roll back")

    @property
    def is_forced(self) -> bool:
        """Whether the rollback may make stored objects unreadable."""
        return bool((self.request.POST or self.request.GET).get("force"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the present plan, also after a refusal."""
        context = super().get_context_data(**kwargs)
        epoch, forced = self.kwargs["epoch"], self.is_forced
        context |= {"epoch": epoch, "is_forced": forced, "plan": None}
        try:
            plan = api.client(self.request).roll_back(epoch, plan=True, force=forced)
        except ClientError as error:
            return {**context, "plan_failure": shown_failure(error)}
        differences = [difference_row(one) for one in plan["changes"][:_SHOWN]]
        total = plan["create"] + plan["replace"] + plan["delete"]
        return {**context, "plan": plan, "differences": differences, "more": total - len(differences)}

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        done = client.roll_back(self.kwargs["epoch"], force=data["force"], etag=f'"{data["version"]}"')
        return str(gettext("Rolled back: %(create)d created, %(replace)d changed, %(delete)d deleted.") % done)
