"""``motif`` and ``space``: what makes objects again, one or all that are contracted, and what is kept below a size."""

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
WAIT: Final = wait_option("wait for it, at most SECONDS, which are 30 if not given; what takes longer goes on", 30.0)
_NOT_FOUND: Final = 404
#: Seconds for which the controller waits for one object.
_LONGEST: Final = 30.0
_bare = re.compile(r"[\w.:/-]+")


def object_path(text: str) -> tuple[str, str, str]:
    """Account, container and name of an object.

    :raises ClientError: when it is no path of one
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
            "an account or account/container; all without it",
            {"metavar": "TARGET", "nargs": "?", "type": target_path},
        ),
    )
    examples = ("acme/thumbs --long",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The objects."""
        account, _, container = (args.target or "").partition("/")
        return self.client.motifs(account, container)


class ListMotifTemplates(ListCommand, words="motif template list", calls="motif_templates"):
    """List the templates that motifs can be made of; a `?` is behind parameters that may be left out."""

    columns = TEMPLATE_LIST


class CreateMotif(ShowCommand, words="motif create"):
    """Have a motif attached to each object that is stored in a container, or by a tenant, from now on.

    That is a policy, whose sentence it shows; delete it to end it. A value `meta:NAME` is taken from each object's
    metadata `X-Object-Meta-NAME`.
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

    Bytes that are gone are made before.
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
        """Nothing is asked where objects are named."""
        return super().question(Namespace(object=args.object or ["the cluster"])) if args.all else ""

    def names(self, args: Namespace) -> list[str]:
        """The objects; with ``--all`` those with motifs of the targets.

        :raises ClientError: when nothing is named
        """
        if args.all:
            targets = [one.partition("/") for one in args.object or [""]]
            rows = (row for account, _, container in targets for row in self.client.motifs(account, container))
            return [row["item"] for row in rows]
        if not args.object:
            raise ClientError("no object is named, expected account/container/object, or `--all`")
        return super().names(args)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Detach them from one."""
        try:
            shown = self.client.detach_motif(*object_path(name), args.template, args.wait)
        except ApiError as error:
            if not args.all or error.status != _NOT_FOUND:
                raise
            return f"object {printable(name)} has no such motif", {}
        return f"object {printable(name)} has {len(shown['motifs'])} motifs", shown


class ShowMotif(ShowCommand, words="motif show"):
    """Show the motifs of an object, and whether its bytes are there."""

    columns = OBJECT
    arguments = (_OBJECT,)
    examples = ("acme/c/copy",)

    def fetch(self, args: Namespace) -> Data:
        """The object."""
        return self.client.motif(*object_path(args.object))


class ExplainMotif(ShowCommand, words="motif explain", earlier="motif why"):
    """Show whether the bytes of an object could go now, and what stands in the way."""

    columns = WHY
    arguments = (_OBJECT,)
    examples = ("acme/c/copy",)

    def fetch(self, args: Namespace) -> Data:
        """The object."""
        return self.client.motif(*object_path(args.object), why=True)


class ContractMotif(EachCommand, words="motif contract"):
    """Give up the bytes of objects that can be made again."""

    arguments = (
        _OBJECTS,
        Argument("--verify", "what is proven before; `head` without it", {"choices": VERIFICATIONS, "default": ""}),
        WAIT,
    )
    examples = ("acme/c/copy --verify expand",)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Contract one."""
        found = self.client.act_on_motif(*object_path(name), "contract", args.verify, args.wait)
        return f"object {printable(name)}: {found['outcome']}", found


SPACES: Final = crud.Resource("space", "/spaces", SPACE_LIST, SPACE)


class ListSpaces(crud.ListResources, resource=SPACES, words="space list"):
    """List spaces: what they are kept at, hold and cost."""


class ShowSpace(crud.ShowResource, resource=SPACES, words="space show"):
    """Show what a space is kept at, holds and costs."""

    @classmethod
    def key_arguments(cls) -> crud.Arguments:
        """A target, as policies have it."""
        text = "what a policy is about: acme/thumbs or `CONTAINER acme/thumbs`, acme, an account, or CLUSTER"
        return (Argument(cls.resource.key, text, {"metavar": "SPACE", "type": target_path}),)

    examples = ("acme/thumbs", "'CONTAINER acme/thumbs'", "CLUSTER")


class ExpandMotif(ShowCommand, words="motif expand"):
    """Make the bytes of an object again, or with `--all` those of all contracted objects of a target, or of the
    cluster."""

    columns = OPERATION
    arguments = (
        Argument("target", "account/container/object; with --all account or account/container",
                 {"metavar": "TARGET", "nargs": "?", "default": "", "type": target_path}),
        Argument("--all", "all contracted objects of the target; how far it is stands on standard error",
                 {"action": "store_true"}),
        Argument("--background", "with --all: do not wait for its end", {"action": "store_true"}),
        wait_option("wait for it, at most SECONDS, which are 30 if not given, with --all until it has ended", math.inf),
    )  # fmt: skip
    examples = ("acme/c/copy", "--all", "--all acme/thumbs --background")

    def run(self, parsed_args: Namespace) -> int:
        """Called by cliff.

        :raises ClientError: when an operation that was waited for was cancelled, or failed for some objects
        """
        if not parsed_args.all:
            if parsed_args.background:
                raise ClientError("`--background` is said of `--all`")
            self.columns = OBJECT  # type: ignore[misc]
        status = super().run(parsed_args)
        if parsed_args.all and not parsed_args.background:
            _refuse_failed(self.raw)
        return status

    def fetch(self, args: Namespace) -> Data:
        """The object, or the operation as it is in the end."""
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
