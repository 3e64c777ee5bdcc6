"""The URLs of the panel *Policies*."""

from __future__ import annotations

from django.urls import URLPattern, re_path

from sluice_dashboard.panels import patterns_of_each_dashboard
from sluice_dashboard.policies import actions, detail, editor, listing


def make_urlpatterns() -> list[URLPattern]:
    """The patterns of one dashboard."""
    policy_path = r"^(?P<policy_id>[^/]+)/"
    return [
        re_path(r"^$", listing.IndexView.as_view(), name="index"),
        re_path(r"^create/$", editor.CreateView.as_view(), name="create"),
        re_path(r"^check/$", editor.CheckView.as_view(), name="check"),
        re_path(r"^words/$", editor.WordsView.as_view(), name="words"),
        re_path(policy_path + r"$", detail.DetailView.as_view(), name="detail"),
        re_path(policy_path + r"plots/(?P<number>[0-9]{1,3})/$", detail.ConditionPlotView.as_view(), name="plot"),
        re_path(policy_path + r"edit/$", editor.EditView.as_view(), name="edit"),
        re_path(policy_path + r"enable/$", actions.EnableView.as_view(), name="enable"),
        re_path(policy_path + r"disable/$", actions.DisableView.as_view(), name="disable"),
        re_path(policy_path + r"delete/$", actions.DeleteView.as_view(), name="delete"),
        re_path(policy_path + r"undo/$", actions.RollBackView.as_view(), name="undo"),
    ]


__getattr__ = patterns_of_each_dashboard(make_urlpatterns)
