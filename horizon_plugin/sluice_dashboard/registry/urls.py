"""The URLs of the panel *Registry*."""

from __future__ import annotations

from django.urls import URLPattern, re_path

from sluice_dashboard.panels import patterns_of_each_dashboard
from sluice_dashboard.registry import entries, groups, stereotypes
from sluice_dashboard.registry.kinds import KINDS


def make_urlpatterns() -> list[URLPattern]:
    """The patterns of one dashboard."""
    kind = rf"(?P<kind>{'|'.join(KINDS)})/"
    changeable = rf"(?P<kind>{'|'.join(slug for slug, one in KINDS.items() if not one.members)})/"
    group = rf"(?P<group>{'|'.join(slug for slug, one in KINDS.items() if one.members)})/"
    # an entry may have the name of a word in these paths, and every name in an answer of the API has a URL
    entry = r"named/(?P<entry>[\s\S]+)/"
    stereotype_path = rf"stereotypes/{entry}"
    target, member = r"(?P<applied_to>[\s\S]+)/", r"(?P<member>[\s\S]+)/"
    return [
        re_path(r"^$", entries.ListView.as_view(), name="index"),
        re_path(rf"^{kind}$", entries.ListView.as_view(), name="list"),
        re_path(rf"^{kind}create/$", entries.CreateView.as_view(), name="create"),
        re_path(rf"^{kind}{entry}delete/$", entries.DeleteView.as_view(), name="delete"),
        re_path(rf"^{changeable}{entry}edit/$", entries.EditView.as_view(), name="edit"),
        re_path(rf"^{group}{entry}members/add/$", groups.AddMemberView.as_view(), name="add"),
        re_path(rf"^{group}{entry}members/{member}remove/$", groups.RemoveMemberView.as_view(), name="remove"),
        re_path(rf"^{group}{entry}$", groups.GroupView.as_view(), name="group"),
        re_path(rf"^{stereotype_path}apply/$", stereotypes.ApplyView.as_view(), name="apply"),
        re_path(
            rf"^{stereotype_path}targets/{target}take-back/$", stereotypes.WithdrawView.as_view(), name="take-back"
        ),
        re_path(rf"^{stereotype_path}$", stereotypes.StereotypeView.as_view(), name="stereotype"),
    ]


__getattr__ = patterns_of_each_dashboard(make_urlpatterns)
