"""The panel *Monitoring* of projects."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice_project import dashboard
from sluice_dashboard.panels import ProjectPanel


class Monitoring(ProjectPanel):
    """The project's own metrics."""

    name = _("Monitoring")
    slug = "monitoring"
    operations = ("metrics:history",)


dashboard.SluiceProject.register(Monitoring)
