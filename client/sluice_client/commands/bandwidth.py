"""``bw``: measured and assigned bandwidth of tenants, nodes and devices; ``slo``: objectives over the whole cluster."""

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
STORAGE_POLICY: Final = Argument("--storage-policy", "only for objects under this storage policy", {"default": ""})
_ACCOUNT: Final = Argument("--account", "only of this account")
_METHOD: Final = Argument("--method", "only by this method", {"choices": METHODS})
_POLICY: Final = Argument("--storage-policy", "only under this one, by its name or index")
_NODE: Final = Argument("--node", "only on this node")
_SIDE: Final = Argument("--side", "only on this side of nodes", {"choices": SIDES})
_DEVICE: Final = Argument("--device", "only on this device")


def table_rows(table: Data) -> Iterator[Data]:
    """Return the lines of the controller's table, each with its place."""
    for server, devices in table.items():
        for device, numbered in devices.items():
            for one in numbered.values():
                moved = sum(each["oid_calculated_BW"] for each in one["objects"])
                yield {"server": server, "device": device, **one, "measured": round(moved, 3)}


class ListBandwidth(ListCommand, words="bw list"):
    """List the requested and measured bandwidth of tenants by object server, device, method and storage policy."""

    columns = resources.LINE_LIST
    arguments = (_ACCOUNT,)
    examples = ("--account AUTH_acme",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The lines of the table."""
        return table_rows(self.client.bandwidth(args.account or ""))


class ListMovingObjects(ListCommand, words="bw object list", earlier="bw show"):
    """List the objects of a tenant that are read or written now, with their rates."""

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
    """Lists the measurements of the last second."""

    #: the last part of the path, which is also the field of the answer
    name: ClassVar[str]

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """Return all rows; without measurements, print a message."""
        query = {one.dest: getattr(args, one.dest) for one in self.arguments}
        collection = self.client.collection(f"/bw/{self.name}")
        yield from collection.list(**query)
        if collection.last_page.get("stale"):
            self.say("no host measures bandwidth now; do an actor host and the agents run?")
        if left_out := collection.last_page.get("left_out"):
            self.say(f"the cluster is too big to show all: {left_out} rows are left out")


class ListFlows(MeasurementList, words="bw flow list", earlier="bw flows"):
    """List floors, shares and traffic of tenants' flows, and how much of a floor is missing."""

    name, columns = "flows", resources.FLOW_LIST
    arguments = (
        _ACCOUNT,
        Argument("--container", "only of this container, if it is counted separately"),
        _METHOD,
        _POLICY,
        Argument("--short", "only those whose floor cannot be met", {"action": "store_const", "const": "true"}),
    )
    examples = ("--method GET", "--short -f json")


class ListNodeBandwidth(MeasurementList, words="bw node list", earlier="bw nodes"):
    """List capacity, assigned and measured bandwidth of proxies and storage nodes."""

    name, columns = "nodes", resources.NODE_LIST
    arguments = (_NODE, _SIDE, _METHOD)
    examples = ("--side storage_node --method GET",)


class ListParts(MeasurementList, words="bw part list", earlier="bw parts"):
    """List the traffic of tenants on each node and device."""

    name, columns = "parts", resources.PART_LIST
    arguments = (_ACCOUNT, _METHOD, _POLICY, _NODE, _SIDE, _DEVICE)
    examples = ("--account AUTH_acme",)


class ListDevices(MeasurementList, words="bw device list", earlier="bw devices"):
    """List the traffic of the devices of storage nodes."""

    name, columns = "devices", resources.DEVICE_LIST
    arguments = (_NODE, _DEVICE, _METHOD)
    examples = ("--node storage-7",)


class SetBandwidth(ShowCommand, words="bw set"):
    """Set a tenant's floor on each object server; `slo set` sets one over the whole cluster."""

    columns = resources.PROMISED
    arguments = (ACCOUNT, VALUE, STORAGE_POLICY, WAIT)
    examples = ("AUTH_acme 30MBps", "AUTH_acme 30 --storage-policy gold --wait 10")

    def fetch(self, args: Namespace) -> Data:
        """The policy of the floor."""
        made = self.client.set_bandwidth(args.account, args.value, args.storage_policy, args.wait)
        warn(self, [made])
        return made


class UnsetBandwidth(ListCommand, words="bw unset", earlier="bw clear"):
    """Delete the floors of `bw set`, of a tenant, or with `--all` of all tenants, and list the deleted policies."""

    columns = resources.UNSET_LIST
    empty = "nothing was set"
    arguments = (
        Argument("account", "a tenant: its account, or its project's name", {"metavar": "ACCOUNT", "nargs": "?"}),
        Argument("--all", "for everybody", {"action": "store_true", "dest": "everybody"}),
        Argument("--storage-policy", "only those for this storage policy", {"default": ""}),
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
    """List the service level objectives of tenants; objectives of other policies are in `policy list`."""

    examples = ("--account AUTH_acme",)


class SetSlo(ShowCommand, words="slo set"):
    """Set a tenant's floor or ceiling over the whole cluster."""

    columns = resources.SLO
    arguments = (
        ACCOUNT,
        Argument(
            "name",
            "get_bw and put_bw are floors, max_get_bw and max_put_bw are ceilings",
            {"choices": NAMES, "metavar": "NAME"},
        ),
        VALUE,
        STORAGE_POLICY,
        WAIT,
    )
    examples = ("AUTH_acme get_bw 30MBps --wait 10", "AUTH_acme max_put_bw 20 --storage-policy gold")

    def fetch(self, args: Namespace) -> Data:
        """The objective after the change."""
        made = self.client.set_slo(args.account, args.name, args.value, args.storage_policy, args.wait)
        warn(self, [made])
        return made


class UnsetSlo(EachCommand, words="slo unset", earlier="slo delete"):
    """Delete objectives of a tenant; its others stay."""

    arguments = (
        ACCOUNT,
        Argument("name", f"{', '.join(NAMES[:-1])} or {NAMES[-1]}", {"nargs": "+", "metavar": "NAME"}),
        STORAGE_POLICY,
        WAIT,
    )
    examples = ("AUTH_acme get_bw put_bw",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Unset one."""
        self.client.delete_slo(args.account, name, args.storage_policy, args.wait)
        return f"objective {name} of {args.account} is unset", None
