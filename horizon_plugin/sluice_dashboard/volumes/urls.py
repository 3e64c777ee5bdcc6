"""The URLs of the panel *Volumes* of administrators, and the subset for projects."""

from __future__ import annotations

from django.urls import URLPattern, re_path

from sluice_dashboard.volumes import actions, pages, tiers

_VOLUME = r"^(?P<volume>[0-9a-fA-F-]{36})"
_TIER = r"^tiers/(?P<tier>[^/]+)"
_POOL = r"^pools/(?P<pool>[^/]+)"


def shared_patterns() -> list[URLPattern]:
    """The patterns of both dashboards, anew for each: Horizon wraps the panel's checks around their views."""
    return [
        re_path(r"^$", pages.IndexView.as_view(), name="index"),
        re_path(r"^create/$", actions.CreateView.as_view(), name="create"),
        re_path(r"^tiers/$", tiers.TiersView.as_view(), name="tiers"),
        re_path(rf"{_VOLUME}/$", pages.DetailView.as_view(), name="detail"),
        re_path(rf"{_VOLUME}/plots/(?P<plot>[a-z]+)/$", pages.VolumePlotView.as_view(), name="plot"),
        re_path(rf"{_VOLUME}/attach/$", actions.AttachView.as_view(), name="attach"),
        re_path(rf"{_VOLUME}/detach/$", actions.DetachView.as_view(), name="detach"),
        re_path(rf"{_VOLUME}/extend/$", actions.ExtendView.as_view(), name="extend"),
        re_path(rf"{_VOLUME}/retype/$", actions.RetypeView.as_view(), name="retype"),
        re_path(rf"{_VOLUME}/delete/$", actions.DeleteView.as_view(), name="delete"),
        re_path(rf"{_VOLUME}/snapshot/$", actions.SnapshotView.as_view(), name="snapshot"),
        re_path(
            rf"{_VOLUME}/snapshots/(?P<snapshot>[^/]+)/delete/$",
            actions.DeleteSnapshotView.as_view(),
            name="delete_snapshot",
        ),
    ]


urlpatterns = [
    *shared_patterns(),
    re_path(r"^tiers/create/$", tiers.CreateTierView.as_view(), name="create_tier"),
    re_path(rf"{_TIER}/mend/$", tiers.MendTierView.as_view(), name="mend_tier"),
    re_path(rf"{_TIER}/delete/$", tiers.DeleteTierView.as_view(), name="delete_tier"),
    re_path(r"^pools/$", tiers.PoolsView.as_view(), name="pools"),
    re_path(rf"{_POOL}/$", tiers.PoolView.as_view(), name="pool"),
    re_path(rf"{_POOL}/plot/$", tiers.PoolPlotView.as_view(), name="pool_plot"),
    re_path(rf"{_POOL}/measure/$", tiers.MeasurePoolView.as_view(), name="measure_pool"),
    re_path(rf"{_POOL}/figures/$", tiers.FiguresView.as_view(), name="figures"),
]
