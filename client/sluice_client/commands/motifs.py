"""``motif`` and ``space``: expansion and contraction of objects, and the spaces that are kept below a size."""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Iterable
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.arguments import Argument, names_argument, pair_option, wait_option
from sluice_client.command_base.command import ListCommand, ShowCommand
from sluice_client.command_base.each import EachCommand
from sluice_client.command_base.targets import sentence_target, target_path
from sluice_client.command_base.watch import PAUSE, wait_for_job
from sluice_client.errors import ApiError, ClientError
from sluice_client.resources.columns import Data, printable
from sluice_client.resources.motifs import (
    OBJECT,
    OBJECT_LIST,
    OPERATION,
    SPACE,
    SPACE_LIST,
    TEMPLATE_LIST,
    WHY,
    operation_line,
)
from sluice_client.resources.policies import POLICY

VERIFICATIONS: Final = ("trust", "head", "expand")
_OBJECT: Final = Argument("object", "account/container/object", {"metavar": "OBJECT", "type": target_path})
_OBJECTS: Final = names_argument("object", "account/container/object", target_path)
_TEMPLATE: Final = Argument("template", "a template, see `motif template list`", {"metavar": "TEMPLATE"})
_PARAMS: Final = pair_option("--param", "a parameter of the template", "params")
WAIT: Final = wait_option("wait for it, at most SECONDS, which are 30 if not given; the operation continues", 30.0)
_NOT_FOUND: Final = 404
#: Seconds for which the controller waits for one object.
_LONGEST: Final = 30.0
_bare = re.compile(r"[\w.:/-]+")


def object_path(text: str) -> tuple[str, str, str]:
    """Return account, container and name of an object.

    :raises ClientError: when it is not an object's path
    """
    parts = text.split("/", 2)
    if len(parts) != 3 or not all(parts):
        raise ClientError(f"`{text}` is no object, expected account/container/object")
    return parts[0], parts[1], parts[2]


class ListMotifs(ListCommand, words="motif list"):
    """List objects with motifs."""

    columns = OBJECT_LIST
    arguments = (
        Argument(
            "target",
            "an account or account/container; default: all",
            {"metavar": "TARGET", "nargs": "?", "type": target_path},
        ),
    )
    examples = ("acme/thumbs --long",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The objects."""
        account, _, container = (args.target or "").partition("/")
        return self.client.motifs(account, container)


class ListMotifTemplates(ListCommand, words="motif template list", calls="motif_templates"):
    """List the templates of motifs; optional parameters end in `?`."""

    columns = TEMPLATE_LIST


class CreateMotif(ShowCommand, words="motif create"):
    """Attach a motif to each object that is stored from now on in a container, or by a tenant.

    This creates a policy, whose sentence it shows; delete the policy to end it. A value `meta:NAME` is taken from each
    object's metadata `X-Object-Meta-NAME`.
    """

    columns = POLICY
    arguments = (
        Argument(
            "target",
            "account/container, or what follows FOR in a sentence: `ALL CONTAINERS`",
            {"metavar": "TARGET", "type": sentence_target},
        ),
        _TEMPLATE,
        _PARAMS,
    )
    examples = ("acme/mirror url --param source=meta:origin",)

    def fetch(self, args: Namespace) -> Data:
        """The new policy."""
        given = {"template": args.template, **(args.params or {})}
        written = " ".join(f"{name}={_quoted(value)}" for name, value in given.items())
        return self.client.create_policy(f"FOR {args.target} DO SET motif WITH {written}")


def _quoted(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _bare.fullmatch(text):
        return text
    if not text.isprintable() or '"' in text or "\\" in text:
        raise ClientError(f"`{printable(text)}` cannot be written here, create the policy by its sentence")
    return f'"{text}"'


class AttachMotif(ShowCommand, words="motif attach"):
    """Attach a motif to an object."""

    columns = OBJECT
    arguments = (_OBJECT, _TEMPLATE, _PARAMS)
    examples = ("acme/c/copy duplicate_of --param source=AUTH_acme/c/original",)

    def fetch(self, args: Namespace) -> Data:
        """The object."""
        return self.client.attach_motif(*object_path(args.object), args.template, args.params)


class DetachMotif(EachCommand, words="motif detach"):
    """Detach motifs from objects, or with `--all` from all objects of targets, or of the cluster.

    Contracted objects are expanded first.
    """

    arguments = (
        Argument("object", "account/container/object; with --all account or account/container",
                 {"metavar": "OBJECT", "nargs": "*", "type": target_path}),
        Argument("--all", "all objects with motifs of the targets", {"action": "store_true"}),
        Argument("--template", "only motifs of this template", {"default": ""}),
        WAIT,
    )  # fmt: skip
    asks = "detach motifs from all objects of {object}"
    examples = ("acme/c/copy", "--all --template tier")

    def question(self, args: Namespace) -> str:
        """Without ``--all`` there is no question."""
        return super().question(Namespace(object=args.object or ["the cluster"])) if args.all else ""

    def names(self, args: Namespace) -> list[str]:
        """The objects; with ``--all`` those with motifs of the targets.

        :raises ClientError: when no object is named
        """
        if args.all:
            targets = [one.partition("/") for one in args.object or [""]]
            rows = (row for account, _, container in targets for row in self.client.motifs(account, container))
            return [row["item"] for row in rows]
        if not args.object:
            raise ClientError("no object is named, expected account/container/object, or `--all`")
        return super().names(args)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Detach the motifs of one object."""
        try:
            shown = self.client.detach_motif(*object_path(name), args.template, args.wait)
        except ApiError as error:
            if not args.all or error.status != _NOT_FOUND:
                raise
            return f"object {printable(name)} has no such motif", {}
        return f"object {printable(name)} has {len(shown['motifs'])} motifs", shown


class ShowMotif(ShowCommand, words="motif show"):
    """Show the motifs of an object, and whether it is contracted."""

    columns = OBJECT
    arguments = (_OBJECT,)
    examples = ("acme/c/copy",)

    def fetch(self, args: Namespace) -> Data:
        """The object."""
        return self.client.motif(*object_path(args.object))


class ExplainMotif(ShowCommand, words="motif explain", earlier="motif why"):
    """Show whether an object can be contracted now, and what prevents it."""

    columns = WHY
    arguments = (_OBJECT,)
    examples = ("acme/c/copy",)

    def fetch(self, args: Namespace) -> Data:
        """The object."""
        return self.client.motif(*object_path(args.object), why=True)


class ContractMotif(EachCommand, words="motif contract"):
    """Contract objects: remove bytes that their motifs can make again."""

    arguments = (
        _OBJECTS,
        Argument("--verify", "the check before it; default: `head`", {"choices": VERIFICATIONS, "default": ""}),
        WAIT,
    )
    examples = ("acme/c/copy --verify expand",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Contract one."""
        found = self.client.act_on_motif(*object_path(name), "contract", args.verify, args.wait)
        return f"object {printable(name)}: {found['outcome']}", found


SPACES: Final = crud.Resource("space", "/spaces", SPACE_LIST, SPACE)


class ListSpaces(crud.ListResources, resource=SPACES, words="space list"):
    """List spaces: target size, content and cost."""


class ShowSpace(crud.ShowResource, resource=SPACES, words="space show"):
    """Show the target size, the content and the cost of a space."""

    @classmethod
    def key_arguments(cls) -> crud.Arguments:
        """A target, in the form of policies."""
        text = "the target of a policy: acme/thumbs or `CONTAINER acme/thumbs`, acme, an account, or CLUSTER"
        return (Argument(cls.resource.key, text, {"metavar": "SPACE", "type": target_path}),)

    examples = ("acme/thumbs", "'CONTAINER acme/thumbs'", "CLUSTER")


class ExpandMotif(ShowCommand, words="motif expand"):
    """Expand an object, or with `--all` all contracted objects of a target, or of the cluster."""

    columns = OPERATION
    arguments = (
        Argument("target", "account/container/object; with --all account or account/container",
                 {"metavar": "TARGET", "nargs": "?", "default": "", "type": target_path}),
        Argument("--all", "all contracted objects of the target; the progress is shown on standard error",
                 {"action": "store_true"}),
        Argument("--background", "with --all: do not wait for its end", {"action": "store_true"}),
        wait_option("wait for it, at most SECONDS, which are 30 if not given, with --all until it has ended", math.inf),
    )  # fmt: skip
    examples = ("acme/c/copy", "--all", "--all acme/thumbs --background")

    def run(self, parsed_args: Namespace) -> int:
        """Called by cliff.

        :raises ClientError: when the operation was cancelled, or failed for some objects
        """
        if not parsed_args.all:
            if parsed_args.background:
                raise ClientError("`--background` is given without `--all`")
            self.columns = OBJECT  # type: ignore[misc]
        status = super().run(parsed_args)
        if parsed_args.all and not parsed_args.background:
            _refuse_failed(self.raw)
        return status

    def fetch(self, args: Namespace) -> Data:
        """The object, or the operation at its end."""
        if not args.all:
            return self.client.act_on_motif(*object_path(args.target), "expand", wait=min(args.wait, _LONGEST))
        account, _, container = args.target.partition("/")
        operation = self.client.expand_all(account, container)
        if args.background:
            return operation

        def fetch() -> Data:
            return self.client.motif_operation(operation["id"], PAUSE)

        has_ended, until = lambda found: bool(found["ended_at"]), args.wait or math.inf
        return wait_for_job(operation, fetch, has_ended, operation_line, self.app.stderr, until)


def _refuse_failed(operation: Data) -> None:
    if operation["state"] == "cancelled":
        raise ClientError(f"operation {operation['id']} was cancelled")
    if operation["failed"]:
        examples = "; ".join(f"{one['item']}: {one['reason']}" for one in operation["examples"][-3:])
        raise ClientError(f"{operation['failed']} objects could not be expanded: {printable(examples)}")
