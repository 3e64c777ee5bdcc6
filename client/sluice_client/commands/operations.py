"""Commands about all resources: overview, permissions, effective policies, changes, export, import and health."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT, Argument, force_option, read_text_argument
from sluice_client.command_base.command import ListCommand, ShowCommand, SluiceCommand
from sluice_client.command_base.targets import target_path
from sluice_client.resources import policies, registry
from sluice_client.resources.columns import Data

_PLAN: Final = Argument("--plan", "only show what would change", {"action": "store_true"})
_FORCE: Final = force_option("even if stored objects could then not be read")
_EPOCH: Final = Argument("epoch", "the change", {"metavar": "EPOCH"})

_REQUEST: Final = (
    Argument("--method", "of the request; default: PUT"),
    Argument("--size", "bytes of the object"),
    Argument("--type", "media type, or an extension such as pdf"),
    Argument("--tag", "tags of the object, separated by commas"),
    Argument("--compressibility", "how many times smaller an upload becomes, such as 2"),
)


class ShowEffective(ShowCommand, words="effective policy show", earlier="effective show", calls="effective"):
    """Show which policies decide for a request or a volume, and why others are overridden."""

    columns = registry.EFFECTIVE
    arguments = (
        Argument(
            "target",
            "account or project[/container[/object]], or account/volume id",
            {"metavar": "TARGET", "type": target_path},
        ),
        Argument("--volume", "TARGET is a volume", {"action": "store_true"}),
        *_REQUEST,
    )
    examples = (
        "AUTH_acme/logs/a.pdf --method PUT --size 100000 --type pdf",
        "AUTH_acme/2f0c6d5e-9f51-4e0c-9d6f-4b8d1f2a7c10 --volume",
    )


class ShowOverview(ShowCommand, words="overview show", calls="overview"):
    """Show policies, nodes and hosts by state, and floors that are not met."""

    columns = registry.OVERVIEW
    examples = ("-f json",)


class ListPermissions(ListCommand, words="permission list"):
    """List the operations that you may call."""

    columns = registry.PERMISSION_LIST
    arguments = (
        Argument("--target", "only operations on this target: a path, or what follows FOR in a sentence"),
        Argument("--policy", "the same, for the policy with this id", {"metavar": "ID"}),
        Argument("--filter", "the keyword that is set or deleted; without it one that is self-service"),
        Argument("--stereotype", "the stereotype that is applied"),
    )
    examples = (
        "--target AUTH_acme/logs --filter encryption",
        "--target 'GROUP gold'",
    )

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """All operations, by name."""
        found = self.client.permissions(**crud.given_values(self.arguments, args))
        return [{"operation": name, "allowed": found[name]} for name in sorted(found)]


class ListChanges(ListCommand, words="change list", calls="changes"):
    """List changes, newest first, with user and time."""

    columns = registry.CHANGE_LIST
    arguments = (
        Argument("--policy", "only those about this policy", {"default": "", "metavar": "ID"}),
        Argument("--by", "only those by this identity", {"default": ""}),
        Argument("--since", "only those from this time on, ISO 8601 or unix seconds", {"default": ""}),
    )
    examples = ("--by admin --since 2026-01-31T00:00:00Z",)


class ShowChange(ShowCommand, words="change show", calls="change"):
    """Show a change, with the documents that it replaced."""

    columns = registry.CHANGE
    arguments = (_EPOCH,)
    examples = ("412",)


class RollBack(ShowCommand, words="change rollback", calls="roll_back"):
    """Roll back the configuration to its state after a change, as a new change."""

    columns = registry.OUTCOME
    arguments = (_EPOCH, _PLAN, _FORCE, WAIT)
    asks = "replace the whole configuration by that after change {epoch}"
    examples = (
        "412 --plan",
        "412 --wait 10",
    )


class Export(SluiceCommand, words="configuration export", earlier="export"):
    """Print the whole configuration as YAML."""

    examples = ("> cluster.yaml",)

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff."""
        self.app.stdout.write(self.client.export())
        return 0


class Import(ShowCommand, words="configuration import", earlier="import"):
    """Replace the whole configuration: all of it, or nothing."""

    columns = registry.OUTCOME
    arguments = (
        Argument("file", "YAML as it was exported, or - for standard input", {"metavar": "FILE"}),
        _PLAN,
        _FORCE,
        WAIT,
    )
    asks = "replace the whole configuration by that in {file}"
    examples = (
        "cluster.yaml --plan",
        "cluster.yaml --wait 30",
    )

    def fetch(self, args: Namespace) -> Data:
        """The changes, or with ``--plan`` the planned ones."""
        text = read_text_argument("-") if args.file == "-" else Path(args.file).read_text(encoding="utf-8")
        return self.client.import_configuration(text, args.plan, args.force, args.wait)


class Health(ShowCommand, words="health show", earlier="health", calls="health"):
    """Show whether the controller and the services that it depends on work."""

    columns = policies.HEALTH
    examples = ("-f json",)
