"""The URLs of the panel *Monitoring* of projects."""

from __future__ import annotations

from django.urls import re_path

from sluice_dashboard.content.sluice_project.monitoring import views

urlpatterns = [
    re_path(r"^$", views.IndexView.as_view(), name="index"),
    re_path(r"^plots/first/$", views.LoadPlotView.as_view(chooser="metric"), name="first_plot"),
    re_path(r"^plots/second/$", views.LoadPlotView.as_view(chooser="beside"), name="second_plot"),
]
