"""Changes, rollback, locality."""

from __future__ import annotations

from django.urls import re_path

from sluice_dashboard.changes import locality, pages

urlpatterns = [
    re_path(r"^$", pages.IndexView.as_view(), name="index"),
    re_path(r"^locality/$", locality.LocalityView.as_view(), name="locality"),
    re_path(r"^(?P<epoch>[0-9]{1,15})/$", pages.ChangeView.as_view(), name="detail"),
    re_path(r"^(?P<epoch>[0-9]{1,15})/rollback/$", pages.RollBackView.as_view(), name="rollback"),
]
