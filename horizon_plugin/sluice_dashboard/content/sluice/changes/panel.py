"""The panel *Changes and locality*."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice import dashboard
from sluice_dashboard.panels import AdminPanel


class Changes(AdminPanel):
    """Who changed what, and where data lie."""

    name = _("Changes and locality")
    slug = "changes"
    operations = ("changes:list", "locality:show")


dashboard.Sluice.register(Changes)
