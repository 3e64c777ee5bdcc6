"""The panel *Filters* of projects."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice_project import dashboard
from sluice_dashboard.panels import ProjectPanel


class Code(ProjectPanel):
    """Filters, and the ones of one's own containers."""

    name = _("Filters")
    slug = "code"
    operations = ("filters:list",)


dashboard.SluiceProject.register(Code)
