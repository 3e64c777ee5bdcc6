"""``filter``: filters that policies can set, and registration of filters at run time."""

from __future__ import annotations

import json
from argparse import BooleanOptionalAction, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Final

from sluice_client.command_base import code_crud, crud
from sluice_client.command_base.arguments import WAIT, Argument, force_option, names_argument, pair_option
from sluice_client.command_base.command import ListCommand, ShowCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.command_base.targets import target_path
from sluice_client.command_base.watch import INSTALLED, Watch, watch_options
from sluice_client.errors import ClientError
from sluice_client.resources import code, policies, registry
from sluice_client.resources.columns import Data

_WORD: Final = "the word that sentences use"
_KEYWORD: Final = Argument("keyword", _WORD, {"metavar": "KEYWORD"})
_TARGET: Final = Argument("target", "account[/container[/object]]", {"metavar": "TARGET", "type": target_path})
_CODE: Final = Argument("--code", "upload its code at once", {"default": "", "metavar": "FILE"})
_FIELDS: Final = (
    Argument("--description", "JSON with any of the following fields", {"default": "", "metavar": "FILE"}),
    Argument("--environment", "where it runs: native (inside Swift, with all its rights), process, storlet or wasm"),
    Argument("--language", "its language, as the environment knows it: python, java or wasm"),
    Argument("--main", "the class to run, where the code has several"),
    Argument("--reverse", "whether a GET reverses the PUT", {"action": BooleanOptionalAction, "default": None}),
    Argument(
        "--self-service",
        "whether members of a project may set it for their own containers",
        {"action": BooleanOptionalAction, "default": None},
    ),
    pair_option("--capability", "a property of the filter, such as stage=450", "capabilities"),
    Argument(
        "--parameter",
        'a parameter, such as {"name": "key", "type": "str", "default": ""}; may be repeated',
        {"action": "append", "default": [], "metavar": "JSON"},
    ),
    Argument("--help-text", "its purpose, in few words", {"metavar": "TEXT"}),
)
_HOW: Final = (
    pair_option("--param", "a parameter and its value", "params"),
    Argument("--place", "proxy or storage_node; default: the filter's own place"),
)
FILTER: Final = crud.Resource(
    "filter",
    "/filters",
    policies.FILTER_LIST,
    code.UPLOADED_FILTER,
    key="keyword",
    fields=_FIELDS,
    delete_options=(force_option("even if stored objects cannot be read without it"),),
)


class ListFilters(ListCommand, words="filter list"):
    """List filters that policies can set."""

    columns = policies.FILTER_LIST
    arguments = (Argument("--all", "every keyword of DO SET, also those not available here", {"action": "store_true"}),)
    examples = ("--all --long",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """All that fit."""
        return self.client.known_filters() if args.all else self.client.filters()


class ShowFilter(crud.ShowResource, resource=FILTER, words="filter show"):
    """Show a filter: one that is installed with the software, or was registered at run time."""

    key_help = _WORD
    examples = ("compression", "rot13 -f json")


class CreateFilter(crud.CreateResource, resource=FILTER, words="filter create"):
    """Register a filter; the description in native code replaces `--reverse`, `--capability` and `--parameter`."""

    key_help = _WORD
    arguments: ClassVar[crud.Arguments] = (_CODE, WAIT)
    examples: ClassVar[tuple[str, ...]] = (
        "rot13 --environment native --code rot13.py --wait 20",
        "shout --environment wasm --language wasm --reverse --capability stage=450 --code shout.wasm",
    )

    def fetch(self, args: Namespace) -> Data:
        """The registration, with its code if that is on the command line."""
        made = self.collection.create(self.description(args))
        if not args.code:
            return made
        return code_crud.upload_file(self, self.client.filter_code, made["keyword"], args.code, args.wait)

    def description(self, args: Namespace) -> dict[str, Any]:
        """All fields, the keyword among them."""
        return {**fields_of(args), "keyword": args.keyword}


class RegisterFilter(CreateFilter, earlier="filter register"):
    """Register a filter as a file describes it."""

    arguments = (
        Argument("description", "JSON: keyword, environment, language, main …", {"metavar": "FILE"}),
        _CODE,
        WAIT,
    )
    examples = ("rot13.json --code rot13.py",)

    def description(self, args: Namespace) -> dict[str, Any]:
        """The content of the file."""
        return read_description(args.description)


class SetFilter(crud.UpdateResource, resource=FILTER, words="filter set"):
    """Change the description of a registered filter; other fields stay."""

    key_help = _WORD
    examples = ("rot13 --self-service",)

    def values(self, args: Namespace) -> dict[str, Any]:
        """The fields that the options give."""
        return fields_of(args)


class UploadFilter(code_crud.UploadCode, resource=FILTER, words="filter upload"):
    """Upload the code of a registered filter, or another revision of it."""

    examples = ("rot13 rot13.py --wait 20",)


class RollBackFilter(code_crud.RollBackCode, resource=FILTER, words="filter rollback"):
    """Roll back a registered filter to the code of an earlier revision, as a new revision."""

    examples = (
        "rot13",
        "rot13 --revision 2 --wait 20",
    )


class DownloadFilter(code_crud.DownloadCode, resource=FILTER, words="filter download"):
    """Write the code of a registered filter into a file."""

    examples = ("rot13 rot13.py",)


class ShowRollout(ShowCommand, words="filter rollout show"):
    """Show which nodes have the newest revision of a filter, and why others use an older one."""

    columns = code.ROLLOUT
    arguments = (
        _KEYWORD,
        *watch_options("follow it until every node has it; fails when a node refuses it"),
    )
    examples = (
        "rot13",
        "rot13 --watch --timeout 60",
    )

    def fetch(self, args: Namespace) -> Data:
        """The filter; with ``--watch``, once all nodes have its code."""
        if watch := Watch.from_options(self, args):
            return watch.until_rolled_out(self.client, args.keyword)
        shown = self.client.filter(args.keyword)
        if shown["rollout"] is None:
            raise ClientError(f"filter `{args.keyword}` is {INSTALLED}")
        return shown


class DeleteFilter(crud.DeleteResources, resource=FILTER, words="filter delete", earlier="filter unregister"):
    """Delete registered filters that no policy uses."""

    key_help = "a registered filter"
    examples = (
        "rot13",
        "rot13 --force",
    )


class ListDeployed(ListCommand, words="filter deployment list", earlier="filter deployed", calls="deployments"):
    """List the filters that policies without metrics set for exactly this target."""

    columns = registry.DEPLOYED_LIST
    arguments = (_TARGET,)
    examples = ("AUTH_acme/logs",)


class DeployFilter(ShowCommand, words="filter deploy"):
    """Set a filter for a target; a repeated call changes nothing, other parameters replace the former ones."""

    columns = registry.DEPLOYED
    arguments = (_TARGET, _KEYWORD, *_HOW, WAIT)
    examples = ("AUTH_acme/logs compression --param engine=lz4 --place proxy --wait 10",)

    def fetch(self, args: Namespace) -> Data:
        """The deployment."""
        return self.client.deploy_filter(args.target, args.keyword, crud.given_values(_HOW, args), args.wait)


class UndeployFilter(EachCommand, words="filter undeploy"):
    """Undeploy filters from a target."""

    arguments = (_TARGET, names_argument("keyword", "a filter"), WAIT)
    examples = ("AUTH_acme/logs compression",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Undeploy one."""
        left = self.client.undeploy_filter(args.target, name, args.wait)
        return f"filter {name} is undeployed from {args.target}", left


def fields_of(args: Namespace) -> dict[str, Any]:
    """Return the description from the options: the file's fields, replaced by those on the command line."""
    description = read_description(args.description) if args.description else {}
    words = {name: getattr(args, name) for name in ("environment", "language", "main", "reverse", "self_service")}
    description |= {name: value for name, value in {**words, "help": args.help_text}.items() if value is not None}
    if args.capabilities:
        description["capabilities"] = {**description.get("capabilities", {}), **args.capabilities}
    if args.parameter:
        description["parameters"] = [_json(one, "`--parameter`") for one in args.parameter]
    return description


def read_description(path: str) -> dict[str, Any]:
    """The object in the JSON file at ``path``."""
    description = _json(Path(path).read_text(encoding="utf-8"), f"`{path}`")
    if not isinstance(description, dict):
        raise ClientError(f"`{path}` holds no object, expected the description of a filter")
    return description


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ClientError(f"{where} is no JSON: {error}") from error
