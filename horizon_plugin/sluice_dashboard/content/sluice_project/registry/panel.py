"""The panel *Registry* of projects."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice_project import dashboard
from sluice_dashboard.panels import ProjectPanel


class Registry(ProjectPanel):
    """Terms, aliases, stereotypes."""

    name = _("Registry")
    slug = "registry"
    operations = ("terms:list", "aliases:list", "stereotypes:list")


dashboard.SluiceProject.register(Registry)
