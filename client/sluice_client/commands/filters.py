"""``filter``: what policies can do, and filters registered at run time."""

from __future__ import annotations

import json
from argparse import BooleanOptionalAction, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, ClassVar, Final, cast

from sluice_client import resources, resources_registry
from sluice_client.client import Client
from sluice_client.columns import Data
from sluice_client.command import WAIT, Argument, EachCommand, ListCommand, ShowCommand, pairs, several
from sluice_client.errors import ClientError
from sluice_client.progress import Progress

_KEYWORD: Final = Argument("keyword", "the word that sentences use", {"metavar": "KEYWORD"})
_TARGET: Final = Argument("target", "account[/container[/object]]", {"metavar": "TARGET"})
_CODE: Final = Argument("--code", "upload its code at once", {"default": "", "metavar": "FILE"})
_FIELDS: Final = (
    Argument("--description", "JSON with any of what follows", {"default": "", "metavar": "FILE"}),
    Argument("--environment", "who runs it: process, storlet or wasm"),
    Argument("--language", "its language, as the environment knows it: python, java or wasm"),
    Argument("--main", "the class to run, where the environment needs one"),
    Argument("--reverse", "whether a GET undoes what a PUT did", {"action": BooleanOptionalAction, "default": None}),
    Argument(
        "--self-service",
        "whether members of a project may set it for what is theirs",
        {"action": BooleanOptionalAction, "default": None},
    ),
    pairs("--capability", "what it declares of itself, such as stage=450", "capabilities"),
    Argument(
        "--parameter",
        'a parameter, such as {"name": "key", "type": "str", "default": ""}; may be repeated',
        {"action": "append", "default": [], "metavar": "JSON"},
    ),
    Argument("--help-text", "what it does, in few words", {"metavar": "TEXT"}),
)


class ListFilters(ListCommand):
    """List filters that policies can set."""

    columns = resources.FILTER_LIST
    arguments = (
        Argument("--all", "every keyword of DO SET, also what this cluster cannot enforce", {"action": "store_true"}),
    )

    def fetch(self, given: Namespace) -> Iterable[Data]:
        """All that fit."""
        return self.client.known_filters() if given.all else self.client.filters()


class ShowFilter(ShowCommand):
    """Show a filter that was registered at run time."""

    columns = resources.FILTER
    arguments = (_KEYWORD,)

    def fetch(self, given: Namespace) -> Data:
        """The registration."""
        return self.client.filter(given.keyword)


class _Uploading(ShowCommand):
    """Shows a filter after its code was uploaded."""

    columns = resources.FILTER

    def upload(self, keyword: str, path: str, wait: float) -> Data:
        """Upload the file at ``path``; a terminal sees how far it is."""
        with Path(path).open("rb") as file:
            if not self.app.stderr.isatty():
                return self.client.upload_filter(keyword, file, wait)
            progress = Progress(file, self.app.stderr)
            try:
                # all that is asked of a body is that it can be read, rewound and measured
                return self.client.upload_filter(keyword, cast(IO[bytes], progress), wait)
            finally:
                progress.end()


class CreateFilter(_Uploading):
    """Register a filter for an isolated environment."""

    arguments: ClassVar[tuple[Argument, ...]] = (_KEYWORD, *_FIELDS, _CODE, WAIT)

    def fetch(self, given: Namespace) -> Data:
        """The registration."""
        return self.create({**fields_of(given), "keyword": given.keyword}, given)

    def create(self, description: Data, given: Namespace) -> Data:
        """Register it, and upload its code if that is given."""
        made = self.client.register_filter(description)
        return self.upload(made["keyword"], given.code, given.wait) if given.code else made


class RegisterFilter(CreateFilter):
    """Register a filter as a file describes it."""

    arguments = (
        Argument("description", "JSON: keyword, environment, language, main …", {"metavar": "FILE"}),
        _CODE,
        WAIT,
    )

    def fetch(self, given: Namespace) -> Data:
        """The registration."""
        return self.create(read_description(given.description), given)


class SetFilter(ShowCommand):
    """Change the description of a registered filter; what is not named stays."""

    columns = resources.FILTER
    arguments = (_KEYWORD, *_FIELDS)

    def fetch(self, given: Namespace) -> Data:
        """The registration as it is now."""
        changes = fields_of(given)
        if not changes:
            raise ClientError("nothing is to be changed, expected an option that says what")
        return changed(self.client, given.keyword, changes)


class UploadFilter(_Uploading):
    """Give a registered filter its code, or another revision of it."""

    arguments = (_KEYWORD, Argument("code", "the code", {"metavar": "FILE"}), WAIT)

    def fetch(self, given: Namespace) -> Data:
        """The registration with its new code."""
        return self.upload(given.keyword, given.code, given.wait)


class DeleteFilter(EachCommand):
    """Forget registered filters that no policy uses."""

    names = "keyword"
    arguments = (
        several("keyword", "a registered filter"),
        Argument("--force", "even if stored objects need it to be read", {"action": "store_true"}),
    )

    def each(self, name: str, given: Namespace) -> tuple[str, Any]:
        """Forget one."""
        self.client.unregister_filter(name, given.force)
        return f"filter {name} is deleted", None


class ListDeployed(ListCommand):
    """List the filters that are set for just this target by policies without metrics."""

    columns = resources_registry.DEPLOYED_LIST
    arguments = (_TARGET,)

    def fetch(self, given: Namespace) -> Iterable[Data]:
        """All of them."""
        return self.client.deployments(given.target)


class DeployFilter(ShowCommand):
    """Set a filter for a target; the same again changes nothing, other parameters replace it."""

    columns = resources_registry.DEPLOYED
    arguments = (
        _TARGET,
        _KEYWORD,
        pairs("--param", "what it is set with", "params"),
        Argument("--place", "proxy or storage_node; the filter's own choice when it is not said"),
        WAIT,
    )

    def fetch(self, given: Namespace) -> Data:
        """The deployment."""
        said = {name: getattr(given, name) for name in ("params", "place")}
        how = {name: value for name, value in said.items() if value is not None}
        return self.client.deploy_filter(given.target, given.keyword, how, given.wait)


class UndeployFilter(EachCommand):
    """Take back what deploying filters for a target has set."""

    names = "keyword"
    arguments = (_TARGET, several("keyword", "a filter"), WAIT)

    def each(self, name: str, given: Namespace) -> tuple[str, Any]:
        """Take back one."""
        left = self.client.undeploy_filter(given.target, name, given.wait)
        return f"filter {name} is taken back from {given.target}", left


def changed(client: Client, keyword: str, changes: Data) -> Data:
    """The registration with ``changes``, unless somebody else changed it at the same time."""
    _, etag = client.filter_and_etag(keyword)
    return client.update_filter(keyword, changes, etag)


def fields_of(given: Namespace) -> dict[str, Any]:
    """The description that options give: those of the file, and over them what the command line says."""
    found = read_description(given.description) if given.description else {}
    words = {name: getattr(given, name) for name in ("environment", "language", "main", "reverse", "self_service")}
    found |= {name: value for name, value in {**words, "help": given.help_text}.items() if value is not None}
    if given.capabilities:
        found["capabilities"] = {**found.get("capabilities", {}), **given.capabilities}
    if given.parameter:
        found["parameters"] = [_json(one, "`--parameter`") for one in given.parameter]
    return found


def read_description(path: str) -> dict[str, Any]:
    """The object in the JSON file at ``path``."""
    found = _json(Path(path).read_text(encoding="utf-8"), f"`{path}`")
    if not isinstance(found, dict):
        raise ClientError(f"`{path}` holds no object, expected the description of a filter")
    return found


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ClientError(f"{where} is no JSON: {error}") from error
