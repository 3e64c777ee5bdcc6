"""``dependency``: files that registered filters need beside their code."""

from __future__ import annotations

from typing import Final

from sluice_client.command_base import code_crud, crud
from sluice_client.command_base.arguments import WAIT, Argument, force_option, repeated_option
from sluice_client.command_base.command import ListCommand, ShowCommand
from sluice_client.command_base.targets import target_path
from sluice_client.resources import code

DEPENDENCY: Final = crud.Resource(
    "dependency",
    "/filters/dependencies",
    code.DEPENDENCY_LIST,
    code.DEPENDENCY,
    fields=(Argument("--help-text", "its purpose", {"dest": "help", "metavar": "TEXT"}),),
    delete_options=(force_option("even while filters use it, which then lack it"),),
)
_TARGET: Final = Argument("target", "account[/container[/object]]", {"metavar": "TARGET", "type": target_path})
_NAME: Final = Argument("name", "the dependency", {"metavar": "NAME"})
_FILTERS: Final = repeated_option("--filter", "a filter, in place of those that are deployed at the target", "filters")


class ListDependencies(crud.ListResources, resource=DEPENDENCY, words="dependency list"):
    """List files that registered filters may need, and which filters use them."""


class ShowDependency(crud.ShowResource, resource=DEPENDENCY, words="dependency show"):
    """Show a file and the filters that use it."""

    examples = ("commons-io.jar",)


class CreateDependency(crud.CreateResource, resource=DEPENDENCY, words="dependency create"):
    """Describe a file that filters need; its data follow with `dependency upload`."""

    examples = ("commons-io.jar --help-text 'what the parser needs'",)


class SetDependency(crud.UpdateResource, resource=DEPENDENCY, words="dependency set"):
    """Change the description of a file."""

    examples = ("commons-io.jar --help-text 'version 2'",)


class UploadDependency(code_crud.UploadCode, resource=DEPENDENCY, words="dependency upload"):
    """Upload the data of a file; one change gives them to all filters that use it."""

    examples = ("commons-io.jar target/commons-io-2.16.jar --wait 10",)


class DownloadDependency(code_crud.DownloadCode, resource=DEPENDENCY, words="dependency download"):
    """Write the data of a dependency into a file."""

    examples = ("commons-io.jar copy.jar",)


class DeleteDependency(crud.DeleteResources, resource=DEPENDENCY, words="dependency delete"):
    """Delete files of registered filters."""

    examples = ("commons-io.jar",)


class ListDeployedDependencies(
    ListCommand, words="dependency deployment list", earlier="dependency deployed", calls="deployed_dependencies"
):
    """List the files that filters deployed at a target use."""

    columns = code.DEPLOYED_DEPENDENCY_LIST
    arguments = (_TARGET,)
    examples = ("AUTH_acme/logs",)


class DeployDependency(ShowCommand, words="dependency deploy", calls="deploy_dependency"):
    """Attach a file to filters; this applies to all tenants that use these filters."""

    columns = code.DEPENDENCY
    arguments = (_TARGET, _NAME, _FILTERS, WAIT)
    examples = ("AUTH_acme commons-io.jar", "AUTH_acme commons-io.jar --filter parse --filter scan")


class UndeployDependency(ShowCommand, words="dependency undeploy", calls="undeploy_dependency"):
    """Detach a file from filters."""

    columns = code.DEPENDENCY
    arguments = (_TARGET, _NAME, _FILTERS, WAIT)
    examples = ("AUTH_acme commons-io.jar --filter scan",)
