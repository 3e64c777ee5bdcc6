"""The URLs of the panel *Volumes* of projects."""

from __future__ import annotations

from sluice_dashboard.volumes.urls import shared_patterns

urlpatterns = shared_patterns()
