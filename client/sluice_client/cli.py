"""``sluice``: the controller on the command line."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from sluice_client import commands
from sluice_client.client import Client
from sluice_client.errors import ClientError

DEFAULT_URL: Final = "http://127.0.0.1:8877"


def parser() -> argparse.ArgumentParser:
    """The command line; each command is a function of :mod:`sluice_client.commands`."""
    found = argparse.ArgumentParser(prog="sluice", description="Write policies for Swift and watch them work.")
    found.add_argument("--url", default=os.environ.get("SLUICE_URL", DEFAULT_URL), help="controller (SLUICE_URL)")
    found.add_argument(
        "--token-file",
        default=os.environ.get("SLUICE_TOKEN_FILE", ""),
        metavar="FILE",
        help="file with the admin token (SLUICE_TOKEN_FILE)",
    )
    found.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS", help="for each answer")
    found.add_argument("--json", action="store_true", help="print the controller's JSON instead of a table")
    things = found.add_subparsers(title="things", required=True, metavar="THING")
    _policy_commands(_thing(things, "policy", "sentences and what became of them"))
    _node_commands(_thing(things, "node", "machines that enforce policies"))
    _filter_commands(_thing(things, "filter", "what policies can do"))
    _add(_thing(things, "metric", "what policies can watch"), "list", commands.list_metrics, "list metrics")
    _add(things, "health", commands.health, "say whether the controller works")
    return found


def _thing(things: Any, name: str, text: str) -> Any:
    return things.add_parser(name, help=text, description=text).add_subparsers(required=True, metavar="COMMAND")


def _add(group: Any, name: str, run: Callable[..., Any], text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = group.add_parser(name, help=text, description=text)
    command.set_defaults(run=run)
    return command


def _policy_commands(group: Any) -> None:
    create = _add(group, "create", commands.create_policy, "create policies: all sentences, or none")
    create.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help="for all live nodes, at most 30")
    check = _add(group, "check", commands.check_policy, "check sentences; changes nothing")
    for command in (create, check):
        command.add_argument("text", metavar="TEXT", help="sentences, or - to read them from standard input")
    listing = _add(group, "list", commands.list_policies, "list policies, oldest first")
    listing.add_argument("--tenant", default="", help="only those about this tenant and what is in it")
    listing.add_argument("--state", default="", choices=("active", "waiting", "failed"), help="only those")
    show = _add(group, "show", commands.show_policy, "show a policy and which nodes enforce it")
    delete = _add(group, "delete", commands.delete_policy, "delete a policy and take back what it set")
    delete.add_argument("--keep", action="store_true", help="leave what is in force, under a new static policy")
    for command in (show, delete):
        command.add_argument("id", metavar="ID", help="a policy's id")


def _node_commands(group: Any) -> None:
    _add(group, "list", commands.list_nodes, "list nodes and how far each of them is")
    _add(group, "adopt", commands.adopt, "tell all nodes to take the current history as it is")
    forget = _add(group, "forget", commands.forget_node, "forget a node that is no more")
    forget.add_argument("node", metavar="NODE", help="a node's name")


def _filter_commands(group: Any) -> None:
    _add(group, "list", commands.list_filters, "list filters")
    register = _add(group, "register", commands.register_filter, "register a filter for an isolated environment")
    register.add_argument("description", metavar="FILE", help="JSON: keyword, environment, language, main, reverse …")
    register.add_argument("--code", default="", metavar="FILE", help="upload its code at once")
    upload = _add(group, "upload", commands.upload_filter, "give a registered filter its code, or another revision")
    upload.add_argument("keyword", metavar="KEYWORD")
    upload.add_argument("code", metavar="FILE")
    for command in (register, upload):
        command.add_argument(
            "--wait", type=float, default=0.0, metavar="SECONDS", help="for all live nodes, at most 30"
        )
    show = _add(group, "show", commands.show_filter, "show a registered filter")
    forget = _add(group, "unregister", commands.unregister_filter, "forget a registered filter that no policy uses")
    forget.add_argument("--force", action="store_true", help="even if stored objects need it to be read")
    for command in (show, forget):
        command.add_argument("keyword", metavar="KEYWORD")


def main(argv: Sequence[str] | None = None) -> int:
    """1 when the controller refuses or does not answer, 2 for a wrong command line."""
    given = parser().parse_args(argv)
    # it would tell of each try; we tell when all have failed
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    try:
        token = Path(given.token_file).read_text(encoding="utf-8").strip() if given.token_file else ""
        with Client(given.url, token, given.timeout) as client:
            data, text = given.run(client, given)
        print(json.dumps(data, indent=2, ensure_ascii=False) if given.json else text)
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read our output has seen enough; keep the interpreter from complaining at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ClientError, OSError, ValueError) as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 1
    return 0
