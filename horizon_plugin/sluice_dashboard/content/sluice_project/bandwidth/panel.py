"""The panel *Bandwidth* of projects."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice_project import dashboard
from sluice_dashboard.panels import ProjectPanel


class Bandwidth(ProjectPanel):
    """The bandwidth of the project."""

    name = _("Bandwidth")
    slug = "bandwidth"
    operations = ("bandwidth:flows", "slos:list")


dashboard.SluiceProject.register(Bandwidth)
