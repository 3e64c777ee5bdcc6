"""What each command of ``sluice`` does: the controller's data, and the same as text for people."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sluice_client.client import Client
from sluice_client.tables import pairs, table

Result = tuple[Any, str]
Data = Mapping[str, Any]


def _text(given: argparse.Namespace) -> str:
    return sys.stdin.read() if given.text == "-" else str(given.text)


def create_policy(client: Client, given: argparse.Namespace) -> Result:
    """``sluice policy create``."""
    created = client.create_policies(_text(given), given.wait)
    return created, "\n".join([_policies(created), *_warnings(created)])


def check_policy(client: Client, given: argparse.Namespace) -> Result:
    """``sluice policy check``."""
    checked = client.check_policy(_text(given))
    rows = (("dynamic" if one["dynamic"] else "static", one["policy"]) for one in checked)
    return checked, "\n".join([table(("KIND", "POLICY"), rows), *_warnings(checked)])


def _warnings(policies: Iterable[Data]) -> list[str]:
    return [
        f"warning: line {one['line']}, column {one['column']}: {one['message']}\n{one['caret']}"
        for policy in policies
        for one in policy["warnings"]
    ]


def list_policies(client: Client, given: argparse.Namespace) -> Result:
    """``sluice policy list``."""
    found = list(client.policies(given.tenant, given.state, page=1000))
    return found, _policies(found)


def _policies(found: Iterable[Data]) -> str:
    rows = ((one["id"], one["state"], _enforced(one), one["created_at"], one["policy"]) for one in found)
    return table(("ID", "STATE", "ENFORCED", "CREATED", "POLICY"), rows)


def _enforced(policy: Data) -> str:
    return f"{policy['enforced']['nodes']}/{policy['enforced']['total']}"


def show_policy(client: Client, given: argparse.Namespace) -> Result:
    """``sluice policy show``."""
    one = client.policy(given.id)
    return one, _policy(one)


def _policy(one: Data) -> str:
    enforced = one["enforced"]
    observed = one["observed"] or {}
    items: list[tuple[str, object]] = [
        ("id", one["id"]),
        ("policy", one["policy"]),
        ("state", " ".join(filter(None, [one["state"], one["reason"]]))),
        ("created", f"{one['created_at']} by {one['created_by']}"),
        ("epoch", one["epoch"]),
        ("enforced", _enforced(one)),
    ]
    items += [("refused", f"{refusal['node']}: {refusal['reason']}") for refusal in enforced["refused"]]
    items += [(name, ", ".join(enforced[name])) for name in ("waiting", "away") if enforced[name]]
    items += [("observed", f"{name} = {value}") for name, value in (observed.get("values") or {}).items()]
    items += [
        ("observed", f"{member}: {name} = {value}")
        for member, values in (observed.get("members") or {}).items()
        for name, value in values.items()
    ]
    items += [("firing", f"{firing['at']} {firing['what']} {firing['member']}") for firing in one["firings"]]
    return pairs(items)


def delete_policy(client: Client, given: argparse.Namespace) -> Result:
    """``sluice policy delete``."""
    kept = client.delete_policy(given.id, keep=given.keep)
    return kept, _policies([kept]) if kept else f"policy {given.id} is deleted"


def list_nodes(client: Client, given: argparse.Namespace) -> Result:
    """``sluice node list``."""
    found = client.nodes()
    shown = ("node", "state", "epoch", "assignments", "workers")
    rows = ((*(one[name] for name in shown), len(one["refused"]), one["detail"]) for one in found)
    return found, table(("NODE", "STATE", "EPOCH", "ASSIGNMENTS", "WORKERS", "REFUSED", "DETAIL"), rows)


def adopt(client: Client, given: argparse.Namespace) -> Result:
    """``sluice node adopt``."""
    head = client.adopt()
    return head, f"nodes are told to take history {head['history']} at epoch {head['epoch']}"


def forget_node(client: Client, given: argparse.Namespace) -> Result:
    """``sluice node forget``."""
    client.forget_node(given.node)
    return None, f"node {given.node} is forgotten"


def list_filters(client: Client, given: argparse.Namespace) -> Result:
    """``sluice filter list``."""
    found = client.filters()
    rows = ((one["keyword"], one["default_place"], _parameters(one), one["help"]) for one in found)
    return found, table(("FILTER", "PLACE", "PARAMETERS", "HELP"), rows)


def register_filter(client: Client, given: argparse.Namespace) -> Result:
    """``sluice filter register``."""
    description = json.loads(Path(given.description).read_text(encoding="utf-8"))
    made = client.register_filter(description)
    if given.code:
        made = client.upload_filter(made["keyword"], Path(given.code).read_bytes(), given.wait)
    return made, _upload(made)


def upload_filter(client: Client, given: argparse.Namespace) -> Result:
    """``sluice filter upload``."""
    made = client.upload_filter(given.keyword, Path(given.code).read_bytes(), given.wait)
    return made, _upload(made)


def show_filter(client: Client, given: argparse.Namespace) -> Result:
    """``sluice filter show``."""
    found = client.filter(given.keyword)
    return found, _upload(found)


def _upload(one: Data) -> str:
    shown = ("keyword", "environment", "language", "main", "reverse", "revision", "size", "sha256", "help")
    return pairs([*((name, one[name]) for name in shown), ("parameters", _parameters(one))])


def unregister_filter(client: Client, given: argparse.Namespace) -> Result:
    """``sluice filter unregister``."""
    client.unregister_filter(given.keyword, given.force)
    return None, f"filter {given.keyword} is forgotten"


def _parameters(one: Data) -> str:
    return ", ".join(parameter["name"] for parameter in one["parameters"])


def list_metrics(client: Client, given: argparse.Namespace) -> Result:
    """``sluice metric list``."""
    found = client.metrics()
    rows = ((one["name"], one["unit"], ", ".join(one["granularities"]), one["help"]) for one in found)
    return found, table(("METRIC", "UNIT", "MEASURED PER", "HELP"), rows)


def health(client: Client, given: argparse.Namespace) -> Result:
    """``sluice health``."""
    found = client.health()
    return found, pairs([("status", found["status"]), *found["dependencies"].items()])
