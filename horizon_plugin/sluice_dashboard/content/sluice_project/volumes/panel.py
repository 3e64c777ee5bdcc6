"""The panel *Volumes* of a project."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice_project import dashboard
from sluice_dashboard.panels import ProjectPanel


class Volumes(ProjectPanel):
    """Its volumes, and tiers; where there is a Cinder."""

    name = _("Volumes")
    slug = "volumes"
    permissions = ("openstack.services.volumev3",)
    operations = ("volumes:list",)


dashboard.SluiceProject.register(Volumes)
