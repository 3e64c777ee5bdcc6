"""``bw``: what tenants, nodes and devices move and may; ``slo``: what tenants are promised over the whole cluster."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import WAIT, Argument
from sluice_client.command_base.command import ListCommand, ShowCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.commands.policies import warn
from sluice_client.errors import ClientError
from sluice_client.resources import bandwidth as resources
from sluice_client.resources.columns import Data

METHODS: Final = ("GET", "PUT", "REPLICATION")
SIDES: Final = ("proxy", "storage_node")
ACCOUNT: Final = Argument("account", "a tenant: its account, or its project's name", {"metavar": "ACCOUNT"})
VALUE: Final = Argument("value", "a rate with its unit; a bare number is MB/s", {"metavar": "VALUE"})
STORAGE_POLICY: Final = Argument("--storage-policy", "for what lies under this storage policy alone", {"default": ""})
_ACCOUNT: Final = Argument("--account", "only of this account")
_METHOD: Final = Argument("--method", "only by this method", {"choices": METHODS})
_POLICY: Final = Argument("--storage-policy", "only under this one, by its name or index")
_NODE: Final = Argument("--node", "only on this node")
_SIDE: Final = Argument("--side", "only on this side of nodes", {"choices": SIDES})
_DEVICE: Final = Argument("--device", "only on this device")


def table_rows(table: Data) -> Iterator[Data]:
    """The lines of the controller's table, each with its place."""
    for server, devices in table.items():
        for device, numbered in devices.items():
            for one in numbered.values():
                moved = sum(each["oid_calculated_BW"] for each in one["objects"])
                yield {"server": server, "device": device, **one, "measured": round(moved, 3)}


class ListBandwidth(ListCommand, words="bw list"):
    """List what tenants asked for and what object servers move for them, by device, method and storage policy."""

    columns = resources.LINE_LIST
    arguments = (_ACCOUNT,)
    examples = ("--account AUTH_acme",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The lines of the table."""
        return table_rows(self.client.bandwidth(args.account or ""))


class ListMovingObjects(ListCommand, words="bw object list", earlier="bw show"):
    """List the objects of a tenant that are read or written now, and how fast."""

    columns = resources.OBJECT_LIST
    arguments = (ACCOUNT,)
    examples = ("AUTH_acme",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """One row for each object on each device."""
        for line in table_rows(self.client.bandwidth(args.account)):
            for one in line["objects"]:
                place = {name: line.get(name) for name in ("server", "device", "method", "policy")}
                yield {**place, **one}


class MeasurementList(ListCommand):
    """Lists what was measured in the last second."""

    #: the last part of the path, under which the answer lists it
    name: ClassVar[str]

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """All of it; when nobody measures, that is said."""
        query = {one.dest: getattr(args, one.dest) for one in self.arguments}
        collection = self.client.collection(f"/bw/{self.name}")
        yield from collection.list(**query)
        if collection.last_page.get("stale"):
            self.say("nobody measures bandwidth now; do an actor host and the agents run?")
        if left_out := collection.last_page.get("left_out"):
            self.say(f"the cluster is too big to show all: {left_out} rows are left out")


class ListFlows(MeasurementList, words="bw flow list", earlier="bw flows"):
    """List what tenants are promised, get and move, and what is missing of their floors."""

    name, columns = "flows", resources.FLOW_LIST
    arguments = (
        _ACCOUNT,
        Argument("--container", "only of this container, where it is counted by itself"),
        _METHOD,
        _POLICY,
        Argument("--short", "only those whose floor cannot be met", {"action": "store_const", "const": "true"}),
    )
    examples = ("--method GET", "--short -f json")


class ListNodeBandwidth(MeasurementList, words="bw node list", earlier="bw nodes"):
    """List what proxies and storage nodes can move, are given and move."""

    name, columns = "nodes", resources.NODE_LIST
    arguments = (_NODE, _SIDE, _METHOD)
    examples = ("--side storage_node --method GET",)


class ListParts(MeasurementList, words="bw part list", earlier="bw parts"):
    """List on which nodes and devices tenants move how much."""

    name, columns = "parts", resources.PART_LIST
    arguments = (_ACCOUNT, _METHOD, _POLICY, _NODE, _SIDE, _DEVICE)
    examples = ("--account AUTH_acme",)


class ListDevices(MeasurementList, words="bw device list", earlier="bw devices"):
    """List what the devices of storage nodes move."""

    name, columns = "devices", resources.DEVICE_LIST
    arguments = (_NODE, _DEVICE, _METHOD)
    examples = ("--node storage-7",)


class SetBandwidth(ShowCommand, words="bw set"):
    """Let each object server give a tenant at least so much; `slo set` promises over the whole cluster."""

    columns = resources.PROMISED
    arguments = (ACCOUNT, VALUE, STORAGE_POLICY, WAIT)
    examples = ("AUTH_acme 30MBps", "AUTH_acme 30 --storage-policy gold --wait 10")

    def fetch(self, args: Namespace) -> Data:
        """The policy that it became."""
        made = self.client.set_bandwidth(args.account, args.value, args.storage_policy, args.wait)
        warn(self, [made])
        return made


class UnsetBandwidth(ListCommand, words="bw unset", earlier="bw clear"):
    """Take back what `bw set` has set, for a tenant, or with `--all` for everybody, and list the policies that go."""

    columns = resources.UNSET_LIST
    arguments = (
        Argument("account", "a tenant: its account, or its project's name", {"metavar": "ACCOUNT", "nargs": "?"}),
        Argument("--all", "for everybody", {"action": "store_true", "dest": "everybody"}),
        Argument("--storage-policy", "only what is for this storage policy", {"default": ""}),
        WAIT,
    )
    examples = ("AUTH_acme", "AUTH_acme --storage-policy gold", "--all")

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The policies that were deleted."""
        account = args.account or ""
        if bool(account) == args.everybody:
            raise ClientError("expected an account or `--all`, one of both")
        if args.storage_policy and not account:
            raise ClientError("`--storage-policy` is given without an account")
        return [{"policy": gone} for gone in self.client.clear_bandwidth(account, args.storage_policy, args.wait)]


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


class UnsetSlo(EachCommand, words="slo unset", earlier="slo delete"):
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
        return f"objective {name} of {args.account} is unset", None
