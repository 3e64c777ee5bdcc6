"""The overview is the first page of the dashboard."""

from __future__ import annotations

from django.urls import re_path

from sluice_dashboard.content.sluice_project.overview import views

urlpatterns = [re_path(r"^$", views.IndexView.as_view(), name="index")]
