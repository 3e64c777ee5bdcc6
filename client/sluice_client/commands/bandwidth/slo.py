"""``slo``: what tenants are promised over the whole cluster, and what they are held to."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.command import WAIT, Argument, EachCommand, ShowCommand
from sluice_client.commands.bandwidth.bw import ACCOUNT, STORAGE_POLICY, VALUE
from sluice_client.commands.policies import warn
from sluice_client.resources import bandwidth as resources
from sluice_client.resources.columns import Data

NAMES: Final = ("get_bw", "put_bw", "max_get_bw", "max_put_bw")
SLO: Final = crud.Resource(
    "objective",
    "/bw/slo",
    resources.SLO_LIST,
    name="slos",
    filters=(
        Argument("--account", "only of this account"),
        Argument("--name", "only of this name", {"choices": NAMES}),
    ),
)


class ListSlos(crud.ListResources, resource=SLO, words="slo list"):
    """List the service level objectives of tenants; what policies promise besides is among the policies."""

    examples = ("--account AUTH_acme",)


class SetSlo(ShowCommand, words="slo set"):
    """Promise a tenant a rate over the whole cluster, or hold it to one."""

    columns = resources.SLO
    arguments = (
        ACCOUNT,
        Argument(
            "name",
            "get_bw and put_bw are promised, max_get_bw and max_put_bw are not exceeded",
            {"choices": NAMES, "metavar": "NAME"},
        ),
        VALUE,
        STORAGE_POLICY,
        WAIT,
    )
    examples = ("AUTH_acme get_bw 30MBps --wait 10", "AUTH_acme max_put_bw 20 --storage-policy gold")

    def fetch(self, args: Namespace) -> Data:
        """The objective as it is now."""
        made = self.client.set_slo(args.account, args.name, args.value, args.storage_policy, args.wait)
        warn(self, [made])
        return made


class DeleteSlo(EachCommand, words="slo delete"):
    """Take objectives of a tenant back; its others stay."""

    arguments = (
        ACCOUNT,
        Argument("name", f"{', '.join(NAMES[:-1])} or {NAMES[-1]}", {"nargs": "+", "metavar": "NAME"}),
        STORAGE_POLICY,
        WAIT,
    )
    examples = ("AUTH_acme get_bw put_bw",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Take one back."""
        self.client.delete_slo(args.account, name, args.storage_policy, args.wait)
        return f"objective {name} of {args.account} is deleted", None
