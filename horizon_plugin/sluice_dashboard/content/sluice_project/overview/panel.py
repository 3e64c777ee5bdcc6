"""The panel *Overview* of projects."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice_project import dashboard
from sluice_dashboard.panels import ProjectPanel


class Overview(ProjectPanel):
    """The project's policies, floors and events."""

    name = _("Overview")
    slug = "overview"
    operations = ("policies:list",)


dashboard.SluiceProject.register(Overview)
