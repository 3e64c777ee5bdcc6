"""*My storage*: the dashboard of a project's members."""

from __future__ import annotations

import horizon
from django.utils.translation import gettext_lazy as _

from sluice_dashboard.panels import ProjectPanel, StorageDashboard


class SluiceProject(StorageDashboard):
    """Panels about the storage of one project."""

    name = _("My storage")
    slug = "sluice_project"


class Overview(ProjectPanel):
    """The project's policies, floors and events."""

    name = _("Overview")
    slug = "overview"
    urls = "sluice_dashboard.monitoring.overview"
    operations = ("policies:list",)


class Policies(ProjectPanel):
    """The policies about the project's account."""

    name = _("Policies")
    slug = "policies"
    urls = "sluice_dashboard.policies.urls"
    operations = ("policies:list",)


class Code(ProjectPanel):
    """Filters, and those of the project's containers."""

    name = _("Filters")
    slug = "code"
    urls = "sluice_dashboard.code.project"
    operations = ("filters:list",)


class Registry(ProjectPanel):
    """Terms, aliases, stereotypes."""

    name = _("Registry")
    slug = "registry"
    urls = "sluice_dashboard.registry.urls"
    operations = ("terms:list", "aliases:list", "stereotypes:list")


class Bandwidth(ProjectPanel):
    """The bandwidth of the project."""

    name = _("Bandwidth")
    slug = "bandwidth"
    urls = "sluice_dashboard.bandwidth.urls"
    operations = ("bandwidth:flows", "slos:list")


class Volumes(ProjectPanel):
    """Its volumes, and tiers; if there is a Cinder."""

    name = _("Volumes")
    slug = "volumes"
    urls = "sluice_dashboard.volumes.project"
    permissions = ("openstack.services.volumev3",)
    operations = ("volumes:list",)


class Monitoring(ProjectPanel):
    """The project's own metrics."""

    name = _("Monitoring")
    slug = "monitoring"
    urls = "sluice_dashboard.monitoring.project"
    operations = ("metrics:history",)


horizon.register(SluiceProject)
for panel in (Overview, Policies, Code, Registry, Bandwidth, Volumes, Monitoring):
    SluiceProject.register(panel)
