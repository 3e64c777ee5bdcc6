"""*My storage*: what a project sees and may do itself."""

from __future__ import annotations

import horizon
from django.utils.translation import gettext_lazy as _


class StorageGroup(horizon.PanelGroup):
    """All panels, in the order of the menu."""

    slug = "storage"
    name = _("Storage")
    panels = ("overview", "policies", "code", "registry", "bandwidth", "volumes", "monitoring", "changes")


class SluiceProject(horizon.Dashboard):
    """Panels of packages that are not there are left out."""

    name = _("My storage")
    slug = "sluice_project"
    panels = (StorageGroup,)
    default_panel = "overview"
    permissions = ("openstack.services.sluice",)


horizon.register(SluiceProject)
