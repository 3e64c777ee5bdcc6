"""``activation``: the URLs that are called when a policy sets or removes a filter."""

from __future__ import annotations

from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import Argument, force_option, read_json, seconds_option
from sluice_client.resources import registry
from sluice_client.resources.columns import Data

ACTIVATION: Final = crud.Resource(
    "activation",
    "/registry/filters",
    registry.ACTIVATION_LIST,
    registry.ACTIVATION,
    key="keyword",
    fields=(
        Argument("--url", "of the service, with {target} and {filter} to be filled in"),
        Argument("--undo", "the URL that is called when the filter is removed"),
        seconds_option("--timeout", "of an attempt", None),
        Argument("--help-text", "the purpose of a third party's filter", {"dest": "help", "metavar": "TEXT"}),
        Argument(
            "--parameter",
            "a parameter of the filter of a third party; may be repeated",
            {"type": read_json, "action": "append", "dest": "parameters", "metavar": "JSON"},
        ),
    ),
    delete_options=(force_option("although policies set it"),),
)


class ListActivations(crud.ListResources, resource=ACTIVATION, words="activation list"):
    """List the service that each filter is activated by; without one, Sluice sets the filter by itself."""


class ShowActivation(crud.ShowResource, resource=ACTIVATION, words="activation show"):
    """Show the activation URL of a filter."""

    examples = ("compression",)


class CreateActivation(crud.CreateResource, resource=ACTIVATION, words="activation create"):
    """Name the service that a filter is activated by, or register the filter of a third party."""

    examples = (
        "compression --url 'https://filters.example.org/{target}/on' --timeout 3",
        "scan --url 'https://scan.example.org/{target}/on' --undo 'https://scan.example.org/{target}/off'"
        """ --parameter '{"name": "depth", "type": "int"}'""",
    )


class SetActivation(crud.UpdateResource, resource=ACTIVATION, words="activation set"):
    """Change the service or the time-out; other fields stay."""

    examples = ("scan --timeout 5",)

    def unchanged(self, registered: Data) -> dict[str, Any]:
        """The controller needs all fields of a service; Sluice's own call has none to keep."""
        before = registered["activation"]
        kept = {name: before[name] for name in ("url", "undo", "timeout")} if before["federated"] else {}
        return {**kept, **{name: registered[name] for name in ("help", "parameters")}} if before["service"] else kept


class DeleteActivation(crud.DeleteResources, resource=ACTIVATION, words="activation delete"):
    """Delete the activations of filters, which Sluice then sets itself."""

    examples = ("scan",)
