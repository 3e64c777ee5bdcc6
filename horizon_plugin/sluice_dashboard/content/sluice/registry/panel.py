"""The panel *Registry* of administrators."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice import dashboard
from sluice_dashboard.panels import AdminPanel


class Registry(AdminPanel):
    """Groups, terms, aliases, stereotypes."""

    name = _("Registry")
    slug = "registry"
    operations = ("groups:list", "stereotypes:create")


dashboard.Sluice.register(Registry)
