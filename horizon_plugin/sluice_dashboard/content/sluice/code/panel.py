"""The panel *Filters, metrics, controllers* of administrators."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice import dashboard
from sluice_dashboard.panels import AdminPanel


class Code(AdminPanel):
    """Code that runs in the cluster."""

    name = _("Filters, metrics, controllers")
    slug = "code"
    operations = ("filters:upload", "metrics:upload", "controllers:list")


dashboard.Sluice.register(Code)
