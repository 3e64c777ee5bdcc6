"""The pages of policies are those of both dashboards."""

from __future__ import annotations

from sluice_dashboard.policies.urls import make_urlpatterns

urlpatterns = make_urlpatterns()
