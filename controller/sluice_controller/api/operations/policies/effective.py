"""``/effective``: the policies that decide for a request, and those that are overridden."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import QueryParameter, operation, query_limit, query_text, query_word
from sluice_controller.api.permissions import authorize, thing_target
from sluice_controller.api.serializers.effective import EffectiveSerializer
from sluice_controller.api.view import View
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.identity.rules import READS_OWN, THING, Rule
from sluice_controller.policies.effective import ResourcePath, effective
from sluice_controller.validation.parameters import Query
from sluice_core.errors import CallerError
from sluice_core.messages.policies import Entry
from sluice_core.messages.predicate import Facts

METHODS: Final = ("PUT", "GET", "HEAD", "POST", "DELETE", "COPY")
_LARGEST: Final = 10**18


def _read_size(given: Query, name: str) -> int | None:
    size = given.text(name)
    if size and not (size.isascii() and size.isdigit() and int(size[:20]) <= _LARGEST and len(size) < 20):
        raise CallerError(f"`size` is `{size}`, expected a whole number of bytes")
    return int(size) if size else None


def _read_ratio(given: Query, name: str) -> float | None:
    if not given.has(name):
        return None
    text = given.text(name)
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0 < ratio < inf:
        raise CallerError(f"`{name}` is `{text}`, expected a number such as 2")
    return ratio


@operation(
    "GET /effective",
    Rule("sluice:effective:show", READS_OWN, "show what is in force for a request", about=THING),
    EffectiveSerializer,
    query_text("target", "account[/container[/object]], of a request; a project's name may stand for its account"),
    query_text("volume", "account/volume id, instead of a target; the parameters about a request are then not used"),
    query_word("method", "of the request", METHODS, default="PUT"),
    QueryParameter("size", OpenApiTypes.INT, "bytes of the object", _read_size),
    query_text("type", "media type, or an extension such as pdf"),
    query_text("tag", "tags of the object, separated by commas"),
    QueryParameter("compressibility", OpenApiTypes.FLOAT, "how many times smaller an upload becomes", _read_ratio),
    query_limit("overridden actions shown of each kind"),
)
def show_effective(view: View, request: Request) -> Response:
    """Show the policies that decide for a request or a volume, and those that are overridden, with the reason.

    Resolved from the same assignments and by the same rules as on the nodes. Properties of the request that are not
    given are unknown, like the size of an upload without a length, and satisfy no condition.
    """
    contents = view.backend.policy_cache.contents()
    place = read_place(view.given, contents.entries, partial(account_of, view.backend.native))
    authorize(request, view.rule, thing_target(place.level, place.account))
    found = effective(view.backend, place, read_facts(view.given, place))
    catalogue = view.backend.described(contents)
    return Response(EffectiveSerializer.render_effective(found, contents, catalogue, view.given["limit"]))


def read_place(
    given: Mapping[str, Any], entries: Mapping[str, Entry], account_of: Callable[[str], str]
) -> ResourcePath:
    """The target or the volume of the query.

    :param account_of: returns the account of a tenant, which may be given by its project's name
    :raises CallerError: when it has neither a target nor a volume, or both
    """
    if bool(given["target"]) is bool(given["volume"]):
        raise CallerError("expected `target`, account[/container[/object]], or `volume`, account/volume id")
    if given["volume"]:
        return ResourcePath.read_volume(given["volume"], entries, account_of)
    return ResourcePath.read(given["target"], entries, account_of)


def read_facts(given: Mapping[str, Any], place: ResourcePath) -> Facts:
    """The properties of the request that the query gives."""
    kind, name = given["type"], place.object
    if kind and "/" not in kind:  # an extension means the type of a name with that extension
        kind, name = "", f"{name}.{kind}"
    said = frozenset(one.strip().lower() for one in given["tag"].split(",") if one.strip())
    upload = given["method"] == "PUT"
    return Facts(
        method=given["method"],
        name=name,
        size=given["size"],
        # As in the proxy server: the type of an upload without a type in its headers is guessed from its name.
        content_type=kind or (mimetypes.guess_type(name)[0] if upload else None),
        tags=said if said or upload else None,
        compressibility=given["compressibility"],
    )
