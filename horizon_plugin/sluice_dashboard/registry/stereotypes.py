"""One stereotype: its sentences, its targets, and the forms that apply and unapply it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from sluice_client import ApiError, Client
from sluice_client.rest.collection import join_path
from sluice_dashboard import api
from sluice_dashboard.registry.entries import KindView
from sluice_dashboard.registry.kinds import KINDS, STEREOTYPES, Kind, TargetForm
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import ConfirmView, PageView, Section, next_query

#: Targets on a page.
PAGE: Final = 100


def targets_path(entry: str, *target: str) -> str:
    """The path of the targets of a stereotype, or of one of them."""
    return join_path(STEREOTYPES, entry, "tenants", *target)


def fetch_targets(client: Client, request: HttpRequest, entry: str) -> Mapping[str, Any]:
    """Return its targets; for a user who may not see all, whether it is applied to the own project."""
    about = api.permissions(request, stereotype=entry)
    may_unapply = about.allow("stereotypes:take_back")
    if about.allow("stereotypes:targets"):
        page = client.get(targets_path(entry), limit=PAGE, marker=request.GET.get("marker", ""))
        targets, following = page["targets"], page["next_marker"]
    else:
        targets, following = own_target(client, request, entry), None
    return {
        "entry": entry,
        "targets": targets,
        "may_unapply": may_unapply,
        "first": "marker" in request.GET,
        "following": next_query(following),
    }


def own_target(client: Client, request: HttpRequest, entry: str) -> list[Mapping[str, Any]]:
    """The user's project, if the stereotype is applied to it."""
    try:
        return [client.get(targets_path(entry, request.user.project_name))]
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return []


class StereotypeView(PageView):
    """One stereotype."""

    page_title = _("Stereotype")
    template_name = "sluice_dashboard/registry/stereotype.html"
    sections = {"targets": Section("sluice_dashboard/registry/_targets.html", fetch_targets, seconds=10)}

    def fetch(self, client: Client) -> Mapping[str, Any]:
        """Return its sentences, and the permitted actions."""
        entry = self.kwargs["entry"]
        about = api.permissions(self.request, stereotype=entry)
        verbs = ("apply", "update", "delete")
        return {
            "stereotype": client.collection(KINDS[STEREOTYPES].path).get(entry),
            "entry": entry,
            "may": {verb: about.allow(f"stereotypes:{verb}") for verb in verbs},
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        breadcrumb = [(KINDS[STEREOTYPES].title, url_in_panel(self.request, "list", STEREOTYPES))]
        return {**super().get_context_data(**kwargs), "custom_breadcrumb": breadcrumb}


class TargetView(KindView):
    """A form about the targets of a stereotype; it leads to the page of the stereotype."""

    next_page = ("stereotype", "entry")

    @property
    def kind(self) -> Kind:
        return KINDS[STEREOTYPES]


class ApplyView(TargetView):
    """Apply it to a tenant or a container."""

    page_title = _("Apply a stereotype")
    submit_label = _("Apply")
    form_class = TargetForm
    template_name = "sluice_dashboard/registry/form.html"

    def get_initial(self) -> dict[str, Any]:
        """A user who may not see all targets starts with the own project."""
        sees_all = api.permissions(self.request).allow("stereotypes:targets")
        return {} if sees_all else {"target": self.request.user.project_name}

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Apply it: all of its sentences, or none."""
        done = client.put(targets_path(self.kwargs["entry"], data["target"]))
        words = {"name": self.kwargs["entry"], "target": data["target"]}
        if done["changed"]:
            return str(_("“%(name)s” is applied to %(target)s.") % words)
        return str(_("“%(name)s” was applied to %(target)s already.") % words)


class WithdrawView(TargetView, ConfirmView):
    """Remove its policies of a target."""

    page_title = _("Unapply a stereotype")
    submit_label = _("Unapply")

    def question(self) -> str:
        words = {"name": self.kwargs["entry"], "target": self.kwargs["applied_to"]}
        return str(_("Unapply “%(name)s” from %(target)s? What it has set there is taken back.") % words)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Delete its policies there."""
        client.delete(targets_path(self.kwargs["entry"], self.kwargs["applied_to"]))
        return str(_("The stereotype is unapplied."))
