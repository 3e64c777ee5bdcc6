"""The panel *Policies* of projects."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice_project import dashboard
from sluice_dashboard.panels import ProjectPanel


class Policies(ProjectPanel):
    """The policies about the project's account."""

    name = _("Policies")
    slug = "policies"
    operations = ("policies:list",)


dashboard.SluiceProject.register(Policies)
