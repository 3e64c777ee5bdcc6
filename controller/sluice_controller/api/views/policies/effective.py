"""``/effective``: which policy decides for a request, and which are overridden."""

from __future__ import annotations

import mimetypes
from typing import Final

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import operation, query
from sluice_controller.api.permissions import authorize, project_target
from sluice_controller.api.serializers.effective import EffectiveSerializer
from sluice_controller.api.views.base import View
from sluice_controller.policies.affected_assignments import ResourcePath
from sluice_controller.policies.effective import effective
from sluice_controller.validation.parameters import Query
from sluice_core.errors import CallerError
from sluice_core.messages.predicate import Facts

METHODS: Final = ("PUT", "GET", "HEAD", "POST", "DELETE", "COPY")
_LARGEST: Final = 10**18


class EffectiveView(View):
    """What holds for one request."""

    @operation(
        "sluice:effective:show",
        "show_effective",
        EffectiveSerializer,
        query("target", OpenApiTypes.STR, "account[/container[/object]]", required=True),
        query("method", OpenApiTypes.STR, "of the request", enum=METHODS, default="PUT"),
        query("size", OpenApiTypes.INT, "bytes of the object"),
        query("type", OpenApiTypes.STR, "media type, or an extension such as pdf"),
        query("tag", OpenApiTypes.STR, "tags of the object, separated by commas"),
        query("limit", OpenApiTypes.INT, "overridden actions shown of each kind, 1 to 1000", default=100),
    )
    def get(self, request: Request) -> Response:
        """Show which policies decide for a request, and which are overridden and why.

        Resolved from the same assignments and by the same rules as on the nodes. What is not said of the
        request is unknown, as the size of an upload without length is, and satisfies no condition.
        """
        given = self.query(request, "target", "method", "size", "type", "tag", "limit")
        contents = self.backend.policy_cache.contents()
        place = ResourcePath.read(given.text("target"), contents.entries)
        target = {"level": place.level, **project_target(place.account, settings.SLUICE.reseller_prefix)}
        authorize(request, self.rules["get"], target)
        limit = given.integer("limit", 100, 1, 1000)
        found = effective(self.backend, place, read_facts(given, place))
        return Response(EffectiveSerializer.render_effective(found, contents, limit))


def read_facts(given: Query, place: ResourcePath) -> Facts:
    """What the query says of the request.

    :raises CallerError: when it says what cannot be
    """
    size = given.text("size")
    if size and not (size.isascii() and size.isdigit() and int(size[:20]) <= _LARGEST and len(size) < 20):
        raise CallerError(f"`size` is `{size}`, expected a whole number of bytes")
    kind, name = given.text("type"), place.object
    if kind and "/" not in kind:  # an extension says what a name that has it would say
        kind, name = "", f"{name}.{kind}"
    method = given.one_of("method", METHODS) or "PUT"
    said = frozenset(one.strip().lower() for one in given.text("tag").split(",") if one.strip())
    upload = method == "PUT"
    return Facts(
        method=method,
        name=name,
        size=int(size) if size else None,
        # as the proxy does: of an upload, what its headers do not say is known
        content_type=kind or (mimetypes.guess_type(name)[0] if upload else None),
        tags=said if said or upload else None,
    )
