"""``activation``: what is called when a policy sets a filter, and when it takes it back."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from sluice_client.command_base.command import Argument, seconds_option
from sluice_client.command_base.crud import (
    CreateResource,
    DeleteResources,
    ListResources,
    Resource,
    ShowResource,
    UpdateResource,
)
from sluice_client.errors import ClientError
from sluice_client.resources import registry
from sluice_client.resources.columns import Data

ACTIVATION: Final = Resource(
    "activation",
    "/registry/filters",
    "filters",
    registry.ACTIVATION_LIST,
    registry.ACTIVATION,
    key="keyword",
    fields=(
        Argument("--url", "of the service, with {target} and {filter} to be filled in"),
        Argument("--undo", "what is called when it is taken back"),
        seconds_option("--timeout", "of an attempt", None),
    ),
)


class ListActivations(ListResources):
    """List the activation URL of every filter; by default it is our own deploy call, which nobody makes."""

    resource = ACTIVATION


class ShowActivation(ShowResource):
    """Show the activation URL of a filter."""

    resource = ACTIVATION
    examples = ("compression",)


class CreateActivation(CreateResource):
    """Name the service that a filter is activated by."""

    resource = ACTIVATION
    examples = (
        "scan --url 'https://scan.example.org/{target}/on' --undo 'https://scan.example.org/{target}/off' --timeout 3",
    )


class SetActivation(UpdateResource):
    """Name another service, or another time-out; what is not named stays."""

    resource = ACTIVATION
    examples = ("scan --timeout 5",)

    def fetch(self, args: Namespace) -> Data:
        """The activation with its changes, unless somebody else changed it at the same time."""
        changes = self.resource.values(self.resource.fields, args)
        if not changes:
            raise ClientError("nothing is to be changed, expected an option that says what")
        found, etag = self.collection.get_with_etag(args.keyword)
        before = found["activation"]
        # the controller takes a whole one, and our own call is nothing to go on from
        kept = {name: before[name] for name in ("url", "undo", "timeout")} if before["federated"] else {}
        return self.collection.update(args.keyword, kept | changes, etag)


class DeleteActivation(DeleteResources):
    """Forget the services of filters: our own call is theirs again."""

    resource = ACTIVATION
    examples = ("scan",)
