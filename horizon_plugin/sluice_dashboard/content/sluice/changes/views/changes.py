"""Who changed what, and the way back: what it means is shown before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sluice_client import Client, ClientError
from sluice_dashboard import api
from sluice_dashboard.content.sluice.changes.differences import change_row, difference_row
from sluice_dashboard.forms import ActionView
from sluice_dashboard.views import PageView, Section, shown_failure

_PAGE: Final = 50
#: Differences that are shown.
_SHOWN: Final = 200
_INDEX: Final = "horizon:sluice:changes:index"
FILTERS: Final = ("policy", "by", "since")


def fetch_changes(client: Client, request: HttpRequest) -> Mapping[str, Any]:
    """One page of changes; ``next`` is the query of the following one."""
    wanted = {name: request.GET.get(name, "") for name in FILTERS}
    page = client.get("/changes", **wanted, marker=request.GET.get("marker", ""), limit=_PAGE)
    query = request.GET.copy()
    query.pop("section", None)
    query["marker"] = page["next_marker"] or ""
    return {
        "rows": [change_row(one) for one in page["changes"]],
        "newest": page["head"]["epoch"],
        "oldest": page["oldest"] if page["trimmed"] else None,
        "next": query.urlencode() if page["next_marker"] else "",
    }


class IndexView(PageView):
    """All changes that are kept, newest first."""

    page_title = gettext_lazy("Changes and locality")
    template_name = "sluice/changes/index.html"
    sections = {"changes": Section("sluice/changes/_changes.html", fetch_changes, seconds=5)}


class ChangeView(PageView):
    """One change, with what it replaced."""

    page_title = gettext_lazy("Change")
    template_name = "sluice/changes/detail.html"

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
    """What the plan was made for."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    force = forms.BooleanField(widget=forms.HiddenInput, required=False)


class RollBackView(ActionView):
    """Back to how it was after a change: the plan, and a button that does just that, or nothing."""

    form_class = RollBackForm
    page_title = gettext_lazy("Roll back")
    template_name = "sluice/changes/rollback.html"
    submit_label = gettext_lazy("Roll back")

    def get_success_url(self) -> str:
        return str(reverse(_INDEX))

    @property
    def is_forced(self) -> bool:
        """Whether stored objects may become unreadable."""
        return bool((self.request.POST or self.request.GET).get("force"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """With the plan as it is now, also after a refusal."""
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
        return str(_("Rolled back: %(create)d created, %(replace)d changed, %(delete)d deleted.") % done)
