"""*Software-defined storage*: the dashboard of administrators of the whole cluster."""

from __future__ import annotations

import horizon
from django.utils.translation import gettext_lazy as _

from sluice_dashboard.panels import AdminPanel, StorageDashboard


class Sluice(StorageDashboard):
    """Panels about the storage of all projects."""

    name = _("Software-defined storage")
    slug = "sluice"


class Overview(AdminPanel):
    """Nodes, services, policies, floors, events."""

    name = _("Overview")
    slug = "overview"
    urls = "sluice_dashboard.monitoring.overview"
    operations = ("nodes:list",)


class Policies(AdminPanel):
    """The policies of all projects."""

    name = _("Policies")
    slug = "policies"
    urls = "sluice_dashboard.policies.urls"
    operations = ("policies:list_all",)


class Code(AdminPanel):
    """Code that runs in the cluster: upload, roll-out, revisions, deployment."""

    name = _("Filters, metrics, controllers")
    slug = "code"
    urls = "sluice_dashboard.code.urls"
    operations = ("filters:upload", "metrics:upload", "controllers:list")


class Registry(AdminPanel):
    """Groups, terms, aliases, stereotypes: names in sentences besides filters and metrics."""

    name = _("Registry")
    slug = "registry"
    urls = "sluice_dashboard.registry.urls"
    operations = ("groups:list", "stereotypes:create")


class Bandwidth(AdminPanel):
    """Objectives, shares and rates of tenants, by node."""

    name = _("Bandwidth")
    slug = "bandwidth"
    urls = "sluice_dashboard.bandwidth.urls"
    operations = ("bandwidth:flows_all", "slos:list_all")


class Volumes(AdminPanel):
    """Volumes, tiers, pools; if there is a Cinder."""

    name = _("Volumes")
    slug = "volumes"
    urls = "sluice_dashboard.volumes.urls"
    permissions = ("openstack.services.volumev3",)
    operations = ("volumes:list_all",)


class Monitoring(AdminPanel):
    """Nodes, and the loads of all tenants."""

    name = _("Monitoring")
    slug = "monitoring"
    urls = "sluice_dashboard.monitoring.urls"
    operations = ("nodes:list",)


class Changes(AdminPanel):
    """Authors of changes, rollback, and the location of data."""

    name = _("Changes and locality")
    slug = "changes"
    urls = "sluice_dashboard.changes.urls"
    operations = ("changes:list", "locality:show")


horizon.register(Sluice)
for panel in (Overview, Policies, Code, Registry, Bandwidth, Volumes, Monitoring, Changes):
    Sluice.register(panel)
