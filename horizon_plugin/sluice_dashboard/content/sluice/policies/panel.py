"""The panel *Policies* of administrators."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice import dashboard
from sluice_dashboard.panels import AdminPanel


class Policies(AdminPanel):
    """The policies of everybody."""

    name = _("Policies")
    slug = "policies"
    operations = ("policies:list_all",)


dashboard.Sluice.register(Policies)
