"""The panel *Monitoring* of administrators."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice import dashboard
from sluice_dashboard.panels import AdminPanel


class Monitoring(AdminPanel):
    """Nodes, and the loads of everybody."""

    name = _("Monitoring")
    slug = "monitoring"
    operations = ("nodes:list",)


dashboard.Sluice.register(Monitoring)
