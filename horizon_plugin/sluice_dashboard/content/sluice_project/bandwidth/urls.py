"""The pages of this panel are those of both dashboards."""

from __future__ import annotations

from sluice_dashboard.bandwidth.urls import make_urlpatterns

urlpatterns = make_urlpatterns()
