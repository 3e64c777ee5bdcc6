"""``motif`` and ``space``: what makes objects again, and what is kept below a size."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable
from typing import Any, Final

from sluice_client.command_base import crud
from sluice_client.command_base.command import (
    Argument,
    EachCommand,
    ListCommand,
    ShowCommand,
    names_argument,
    pair_option,
    seconds_option,
)
from sluice_client.errors import ApiError, ClientError
from sluice_client.resources.columns import Data, printable
from sluice_client.resources.motifs import (
    OBJECT,
    OBJECT_LIST,
    SPACE,
    SPACE_LIST,
    TEMPLATE_LIST,
    WHY,
)
from sluice_client.resources.policies import POLICY

VERIFICATIONS: Final = ("trust", "head", "expand")
_OBJECT: Final = Argument("object", "account/container/object", {"metavar": "OBJECT"})
_OBJECTS: Final = names_argument("object", "account/container/object")
_TEMPLATE: Final = Argument("template", "a template, see `motif template list`", {"metavar": "TEMPLATE"})
_PARAMS: Final = pair_option("--param", "a parameter of the template", "params")
WAIT: Final = seconds_option("--wait", "wait for it, at most 30; what takes longer goes on")
_NOT_FOUND: Final = 404
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
        Argument("target", "an account or account/container; all without it", {"metavar": "TARGET", "nargs": "?"}),
    )
    examples = ("acme/thumbs --long",)

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The objects."""
        account, _, container = (args.target or "").partition("/")
        return self.client.motifs(account, container)


class ListMotifTemplates(ListCommand, words="motif template list"):
    """List the templates that motifs can be made of; a `?` is behind parameters that may be left out."""

    columns = TEMPLATE_LIST

    def fetch(self, args: Namespace) -> Iterable[Data]:
        """The templates."""
        return self.client.motif_templates()


class CreateMotif(ShowCommand, words="motif create"):
    """Have a motif attached to each object that is stored in a container, or by a tenant, from now on.

    That is a policy, whose sentence it shows; delete it to end it. A value `meta:NAME` is taken from each object's
    metadata `X-Object-Meta-NAME`.
    """

    columns = POLICY
    arguments = (
        Argument("target", "what follows FOR in a sentence: `CONTAINER acme/thumbs`", {"metavar": "TARGET"}),
        _TEMPLATE,
        _PARAMS,
    )
    examples = ("'CONTAINER acme/mirror' url --param source=meta:origin",)

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
                 {"metavar": "OBJECT", "nargs": "*"}),
        Argument("--all", "all objects with motifs of the targets", {"action": "store_true"}),
        Argument("--template", "only motifs of this template", {"default": ""}),
        WAIT,
    )  # fmt: skip
    examples = ("acme/c/copy", "--all --template tier")

    def take_action(self, parsed_args: Namespace) -> int:
        """Called by cliff.

        :raises ClientError: when some failed, or nothing is named
        """
        if parsed_args.all:
            targets = [one.partition("/") for one in parsed_args.object or [""]]
            rows = (row for account, _, container in targets for row in self.client.motifs(account, container))
            parsed_args.object = [row["item"] for row in rows]
        elif not parsed_args.object:
            raise ClientError("no object is named, expected account/container/object, or `--all`")
        return super().take_action(parsed_args)

    def each(self, name: str, args: Namespace) -> tuple[str, Any]:
        """Detach them from one."""
        try:
            found = self.client.detach_motif(*object_path(name), args.template, args.wait)
        except ApiError as error:
            if not args.all or error.status != _NOT_FOUND:
                raise
            return f"object {printable(name)} has no such motif", {}
        return f"object {printable(name)} has {len(found['motifs'])} motifs", found


class ShowMotif(ShowCommand, words="motif show"):
    """Show the motifs of an object, and whether its bytes are there."""

    columns = OBJECT
    arguments = (_OBJECT,)
    examples = ("acme/c/copy",)

    def fetch(self, args: Namespace) -> Data:
        """The object."""
        return self.client.motif(*object_path(args.object))


class ExplainMotif(ShowCommand, words="motif why"):
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

    key_help = "account or project/container, account or project, or CLUSTER"
    examples = ("acme/thumbs", "CLUSTER")
