"""Every command by its words: the one table that ``sluice``, ``openstack`` and the documentation are made of.

A new command is a class in a module of this package, a line here, and the line of ``setup.cfg`` that
``python -m sluice_client.describe --entry-points`` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_client.command import SluiceCommand
from sluice_client.commands import filters, groups, nodes, operations, policies, registry

#: ``sluice policy list`` and ``openstack sluice policy list``.
COMMANDS: Final[Mapping[str, type[SluiceCommand]]] = {
    "policy create": policies.CreatePolicy,
    "policy list": policies.ListPolicies,
    "policy show": policies.ShowPolicy,
    "policy check": policies.CheckPolicy,
    "policy set": policies.SetPolicy,
    "policy enable": policies.EnablePolicy,
    "policy disable": policies.DisablePolicy,
    "policy delete": policies.DeletePolicy,
    "effective show": operations.ShowEffective,
    "filter list": filters.ListFilters,
    "filter show": filters.ShowFilter,
    "filter create": filters.CreateFilter,
    "filter upload": filters.UploadFilter,
    "filter set": filters.SetFilter,
    "filter delete": filters.DeleteFilter,
    "filter deploy": filters.DeployFilter,
    "filter deployed": filters.ListDeployed,
    "filter undeploy": filters.UndeployFilter,
    "metric list": registry.ListMetrics,
    "metric show": registry.ShowMetric,
    "metric create": registry.CreateMetric,
    "metric set": registry.SetMetric,
    "metric delete": registry.DeleteMetric,
    "term list": registry.ListTerms,
    "term show": registry.ShowTerm,
    "term create": registry.CreateTerm,
    "term set": registry.SetTerm,
    "term delete": registry.DeleteTerm,
    "alias list": registry.ListAliases,
    "alias show": registry.ShowAlias,
    "alias create": registry.CreateAlias,
    "alias set": registry.SetAlias,
    "alias delete": registry.DeleteAlias,
    "group list": groups.ListGroups,
    "group show": groups.ShowGroup,
    "group create": groups.CreateGroup,
    "group set": groups.SetGroup,
    "group add": groups.AddTenant,
    "group remove": groups.RemoveTenant,
    "group delete": groups.DeleteGroup,
    "container group list": groups.ListContainerGroups,
    "container group show": groups.ShowContainerGroup,
    "container group create": groups.CreateContainerGroup,
    "container group set": groups.SetContainerGroup,
    "container group add": groups.AddContainer,
    "container group remove": groups.RemoveContainer,
    "container group delete": groups.DeleteContainerGroup,
    "stereotype list": groups.ListStereotypes,
    "stereotype show": groups.ShowStereotype,
    "stereotype create": groups.CreateStereotype,
    "stereotype set": groups.SetStereotype,
    "stereotype apply": groups.ApplyStereotype,
    "stereotype applied": groups.ListApplied,
    "stereotype take back": groups.TakeBackStereotype,
    "stereotype delete": groups.DeleteStereotype,
    "node list": nodes.ListNodes,
    "node show": nodes.ShowNode,
    "node adopt": nodes.AdoptHistory,
    "node delete": nodes.DeleteNode,
    "change list": operations.ListChanges,
    "change show": operations.ShowChange,
    "change rollback": operations.RollBack,
    "export": operations.Export,
    "import": operations.Import,
    "health": operations.Health,
}

#: Earlier words, of ``sluice`` alone; they are not in its help.
EARLIER: Final[Mapping[str, type[SluiceCommand]]] = {
    "filter register": filters.RegisterFilter,
    "filter unregister": filters.DeleteFilter,
    "node forget": nodes.DeleteNode,
}
