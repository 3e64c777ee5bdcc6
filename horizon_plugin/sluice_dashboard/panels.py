"""The base of Sluice's dashboards and panels.

``content/sluice/dashboard.py`` and ``content/sluice_project/dashboard.py`` list the panels of each dashboard and
register them.  Horizon also looks for a package with ``panel.py`` beside each dashboard, and ignores that there is
none.  A panel's ``urls`` names the module with its ``urlpatterns``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import horizon
from django.urls import URLPattern
from django.utils.translation import gettext_lazy as _

from sluice_dashboard import api


class StorageGroup(horizon.PanelGroup):
    """All panels, in the order of the menu; panels that a dashboard does not register are omitted."""

    slug = "storage"
    name = _("Storage")
    panels = ("overview", "policies", "code", "registry", "bandwidth", "volumes", "monitoring", "changes")


class StorageDashboard(horizon.Dashboard):
    """A dashboard for users with the service in the catalogue."""

    panels = (StorageGroup,)
    default_panel = "overview"
    permissions = ("openstack.services.sluice",)


class ProjectPanel(horizon.Panel):
    """A panel for users who may call one of its ``operations``, as ``policies:list``; empty: for all users."""

    operations: ClassVar[tuple[str, ...]] = ()

    def allowed(self, context: Any) -> bool:
        """Called for the menu, and before each view of the panel."""
        request = context["request"]
        if not super().allowed(context) or not api.is_there(request):
            return False
        known = api.permissions(request)
        if known.known and self.operations:
            return known.allow_any(self.operations)
        return self.allowed_unless_known(context)

    def allowed_unless_known(self, context: Any) -> bool:
        """The same while the API does not return permissions."""
        return True


class AdminPanel(ProjectPanel):
    """A panel about the storage of all projects."""

    def allowed_unless_known(self, context: Any) -> bool:
        return bool(context["request"].user.is_superuser)


def patterns_of_each_dashboard(make: Callable[[], list[URLPattern]]) -> Callable[[str], list[URLPattern]]:
    """The ``__getattr__`` of a module whose ``urlpatterns`` are made anew for each dashboard.

    Horizon reads them once for each panel, and wraps the panel's checks around the views of the patterns:
    patterns that two panels share would check the permissions of both.
    """

    def attribute(name: str) -> list[URLPattern]:
        if name != "urlpatterns":
            raise AttributeError(name)
        return make()

    return attribute
