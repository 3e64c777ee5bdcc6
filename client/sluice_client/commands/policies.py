"""``policy``: sentences and their policies."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any, Final

from sluice_client.command_base.arguments import WAIT, Argument, names_argument, read_text_argument
from sluice_client.command_base.command import ListCommand, ShowCommand, SluiceCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.command_base.watch import Watch, watch_options
from sluice_client.resources import policies as resources_policies
from sluice_client.resources import registry
from sluice_client.resources.columns import Data

STATES: Final = ("active", "waiting", "failed", "disabled")
FIRINGS: Final = ("set", "changed", "taken_back")
_ID: Final = Argument("id", "a policy's id", {"metavar": "ID"})
_TEXT: Final = Argument("text", "sentences, or - to read them from standard input", {"metavar": "TEXT"})


def warn(command: SluiceCommand, policies: Iterable[Data]) -> None:
    """Print the warnings of the compiler on standard error."""
    for one in (warning for policy in policies for warning in policy["warnings"]):
        command.say(f"warning: line {one['line']}, column {one['column']}: {one['message']}\n{one['caret']}")


class CreatePolicy(ListCommand, words="policy create"):
    """Create policies: all sentences of the text, or none."""

    columns = resources_policies.POLICY_LIST
    arguments = (_TEXT, WAIT)
    examples = (
        "'FOR TENANT acme WHEN PUTS_SEC > 3 DO SET compression TRANSIENT' --wait 10",
        "- < policies.txt",
    )

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The new policies."""
        created = self.client.create_policies(read_text_argument(args.text), args.wait)
        warn(self, created)
        return created


class CheckPolicy(ListCommand, words="policy check"):
    """Check sentences; changes nothing."""

    columns = resources_policies.CHECKED_LIST
    arguments = (
        _TEXT,
        Argument("--replaces", "the policy that the text would replace", {"default": "", "metavar": "ID"}),
    )
    examples = (
        "'FOR ALL TENANTS DO SET bandwidth WITH get_bw=30MBps' --long",
        "'FOR TENANT acme DO SET compression WITH engine=lz4' --replaces pol-1a2b3c",
    )

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The policies that they would become."""
        checked = self.client.check_policy(read_text_argument(args.text), args.replaces)
        warn(self, checked)
        return checked


class CompletePolicy(ListCommand, words="policy complete"):
    """List the possible next words of a sentence."""

    columns = resources_policies.CANDIDATE_LIST
    arguments = (
        _TEXT,
        Argument("--position", "characters before the position; default: the end of TEXT", {"type": int}),
    )
    examples = ("'FOR TENANT acme WHEN PUT'",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The candidates."""
        text = read_text_argument(args.text)
        found = self.client.complete_policy(text, len(text) if args.position is None else args.position)
        candidates: list[Data] = found["candidates"]
        return candidates


class ListPolicies(ListCommand, words="policy list"):
    """List policies, by age."""

    columns = resources_policies.POLICY_LIST
    arguments = (
        Argument("--tenant", "only those for this tenant and what is in it", {"default": ""}),
        Argument("--state", "only those in this state", {"default": "", "choices": STATES}),
        Argument("--text", "only those whose sentence contains this, in any case", {"default": ""}),
        Argument("--newest", "the newest first", {"action": "store_true"}),
    )
    examples = (
        "--tenant AUTH_acme --state failed -f json",
        "--text compression --newest",
    )

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """All that fit."""
        order = "newest" if args.newest else ""
        return self.client.policies(args.tenant, args.state, args.text, order, page=1000)


class ShowPolicy(ShowCommand, words="policy show"):
    """Show a policy and which nodes enforce it."""

    columns = resources_policies.POLICY
    arguments = (
        _ID,
        *watch_options("follow it until every node enforces it; fails when it fails or a node refuses it"),
    )
    examples = (
        "pol-1a2b3c",
        "pol-1a2b3c --watch --timeout 60",
    )

    def fetch(self, args: Namespace) -> Data:
        """The policy; with ``--watch``, once it is enforced."""
        if watch := Watch.from_options(self, args):
            return watch.until_enforced(self.client, args.id)
        policy = self.client.policy(args.id)
        warn(self, [policy])
        return policy


class _UpdatePolicy(ShowCommand):
    """Changes one policy, unless another request changed it at the same time."""

    columns = resources_policies.POLICY

    def revise(self, policy_id: str, changes: Data, wait: float) -> Data:
        """Return the changed policy."""
        version = self.client.policy(policy_id)["version"]
        return self.client.update_policy(policy_id, changes, f'"{version}"', wait)


class SetPolicy(_UpdatePolicy, words="policy set"):
    """Change the sentence of a policy; its id and its age stay."""

    arguments = (_ID, _TEXT, WAIT)
    examples = ("pol-1a2b3c 'FOR TENANT acme DO SET compression WITH engine=lz4' --wait 10",)

    def fetch(self, args: Namespace) -> Data:
        """The changed policy."""
        revised = self.revise(args.id, {"policy": read_text_argument(args.text)}, args.wait)
        warn(self, [revised])
        return revised


class EnablePolicy(_UpdatePolicy, words="policy enable"):
    """Enable a disabled policy."""

    arguments = (_ID, WAIT)
    enabled = True
    examples = ("pol-1a2b3c",)

    def fetch(self, args: Namespace) -> Data:
        """The changed policy."""
        return self.revise(args.id, {"enabled": self.enabled}, args.wait)


class DisablePolicy(EnablePolicy, words="policy disable"):
    """Disable a policy: remove its assignments, and keep it."""

    enabled = False
    examples = ("pol-1a2b3c --wait 10",)


class DeletePolicy(EachCommand, words="policy delete"):
    """Delete policies and their assignments."""

    arguments = (
        names_argument("id", "a policy's id"),
        Argument("--keep", "keep the assignments in force, under a new static policy", {"action": "store_true"}),
        WAIT,
    )
    asks = "delete policy {id}"
    examples = (
        "pol-1a2b3c pol-4d5e6f",
        "pol-1a2b3c --keep",
    )

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Delete one."""
        kept = self.client.delete_policy(name, keep=args.keep, wait=args.wait)
        left = f", policy {kept['id']} keeps what was in force: {kept['policy']}" if kept else ""
        return f"policy {name} is deleted{left}", kept


class RollBackPolicy(ShowCommand, words="policy rollback", earlier="policy undo", calls="undo_policy"):
    """Roll back the last change of a policy, or its deletion; a second rollback restores it."""

    columns = registry.OUTCOME
    arguments = (_ID, Argument("--plan", "only show what would change", {"action": "store_true"}), WAIT)
    examples = ("pol-1a2b3c --plan",)


class ListFirings(ListCommand, words="policy firing list", earlier="policy firings", calls="firings"):
    """List the actions of a policy's actor, newest first."""

    columns = resources_policies.FIRING_LIST
    arguments = (
        _ID,
        Argument("--what", "only those of this kind", {"default": "", "choices": FIRINGS}),
        Argument("--member", "only those for this member of a group or ALL", {"default": ""}),
    )
    examples = (
        "pol-1a2b3c --what set",
        "pol-1a2b3c --member AUTH_acme -f json",
    )
