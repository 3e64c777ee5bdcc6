"""The panel *Volumes* of administrators."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from sluice_dashboard.content.sluice import dashboard
from sluice_dashboard.panels import AdminPanel


class Volumes(AdminPanel):
    """Volumes, tiers, pools; where there is a Cinder."""

    name = _("Volumes")
    slug = "volumes"
    permissions = ("openstack.services.volumev3",)
    operations = ("volumes:list_all",)


dashboard.Sluice.register(Volumes)
