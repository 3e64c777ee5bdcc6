"""The panel *Overview* of administrators."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice import dashboard
from sluice_dashboard.panels import AdminPanel


class Overview(AdminPanel):
    """Nodes, services, policies, floors, events."""

    name = _("Overview")
    slug = "overview"
    operations = ("nodes:list",)


dashboard.Sluice.register(Overview)
