"""The panel *Bandwidth* of administrators."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice import dashboard
from sluice_dashboard.panels import AdminPanel


class Bandwidth(AdminPanel):
    """The bandwidth of everybody."""

    name = _("Bandwidth")
    slug = "bandwidth"
    operations = ("bandwidth:flows_all", "slos:list_all")


dashboard.Sluice.register(Bandwidth)
