"""One group: its members, and forms that add and remove them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from sluice_client import Client
from sluice_client.rest.collection import join_path
from sluice_dashboard.registry.entries import KindView
from sluice_dashboard.registry.kinds import KINDS, Kind, MemberForm
from sluice_dashboard.templatetags.sluice import url_in_panel
from sluice_dashboard.views import ConfirmView, PageView, Section, next_query

#: Members on a page: a group has up to 10,000.
PAGE: Final = 100


def members_path(kind: Kind, entry: str, *member: str) -> str:
    """The path of a group's members, or of one of them."""
    return kind.path + join_path(entry, kind.members, *member)


def fetch_members(client: Client, request: HttpRequest, group: str, entry: str) -> Mapping[str, Any]:
    """Return one page of members."""
    query = {"limit": PAGE, "marker": request.GET.get("marker", "")}
    answer = client.get(members_path(KINDS[group], entry), **query)
    return {
        "group": group,
        "entry": entry,
        "members": answer["members"],
        "first": bool(query["marker"]),
        "following": next_query(answer["next_marker"]),
    }


class GroupView(PageView):
    """One group."""

    template_name = "sluice_dashboard/registry/group.html"
    sections = {"members": Section("sluice_dashboard/registry/_members.html", fetch_members, seconds=10)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kind = KINDS[self.kwargs["group"]]
        return {
            **super().get_context_data(**kwargs),
            "page_title": capfirst(kind.one),
            "custom_breadcrumb": [(kind.title, url_in_panel(self.request, "list", kind.slug))],
        }


class MemberView(KindView):
    """A form about members of a group; it leads to the page of the group."""

    next_page = ("group", "group", "entry")

    @property
    def kind(self) -> Kind:
        return KINDS[self.kwargs["group"]]


class AddMemberView(MemberView):
    """Add a member."""

    page_title = _("Add a member")
    submit_label = _("Add")
    form_class = MemberForm
    template_name = "sluice_dashboard/registry/form.html"

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Add it."""
        client.collection(self.kind.path).update(self.kwargs["entry"], {self.member_field: data["member"]})
        return str(_("“%s” is a member now.") % data["member"])

    @property
    def member_field(self) -> str:
        """The field of a body with one member to add: ``tenants`` without the plural."""
        return self.kind.members.removesuffix("s")


class RemoveMemberView(MemberView, ConfirmView):
    """Remove a member."""

    page_title = _("Take a member out")
    submit_label = _("Take out")

    def question(self) -> str:
        words = {"member": self.kwargs["member"], "group": self.kwargs["entry"]}
        return str(_("Take “%(member)s” out of the group “%(group)s”?") % words)

    def act(self, client: Client, data: Mapping[str, Any]) -> str:
        """Remove it."""
        client.delete(members_path(self.kind, self.kwargs["entry"], self.kwargs["member"]))
        return str(_("“%s” is no member any more.") % self.kwargs["member"])
