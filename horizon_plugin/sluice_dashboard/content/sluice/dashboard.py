"""*Software-defined storage*: what administrators of the whole cluster see."""

from __future__ import annotations

import horizon
from django.utils.translation import gettext_lazy as _


class StorageGroup(horizon.PanelGroup):
    """All panels, in the order of the menu."""

    slug = "storage"
    name = _("Storage")
    panels = ("overview", "policies", "code", "registry", "bandwidth", "volumes", "monitoring", "changes")


class Sluice(horizon.Dashboard):
    """Panels of packages that are not there are left out."""

    name = _("Software-defined storage")
    slug = "sluice"
    panels = (StorageGroup,)
    default_panel = "overview"
    permissions = ("openstack.services.sluice",)


horizon.register(Sluice)
