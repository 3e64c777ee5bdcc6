"""``/motifs``: objects with motifs, what may be attached, expansions of many objects; ``/spaces``."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller import motifs
from sluice_controller.api.openapi import (
    LIST,
    MARKER,
    header,
    in_path,
    operation,
    query_flag,
    query_limit,
    query_text,
    query_wait,
    query_word,
)
from sluice_controller.api.permissions import authorize, thing_target, visible_accounts
from sluice_controller.api.prometheus import spaces as prometheus
from sluice_controller.api.prometheus.cluster import CONTENT_TYPE
from sluice_controller.api.renderers import TEXT, TextView
from sluice_controller.api.resources import url_path
from sluice_controller.api.serializers import motifs as shapes
from sluice_controller.api.view import View
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.identity.rules import ADMIN, READER, READS_OWN, THING, WRITES_OBJECTS, Rule
from sluice_controller.validation.bodies import Body
from sluice_core.errors import CallerError
from sluice_core.messages.elasticity import VERIFICATIONS
from sluice_core.messages.policies import CLUSTER, CONTAINER, OBJECT, TENANT
from sluice_motif_control.messages import CONTRACT, DETACH, EXPAND

_PATH = (
    in_path("account", "an account, or the name of a project"),
    in_path("container", "the name of a container"),
    in_path("object_name", "the name of an object; it may hold slashes"),
)
_WAIT = query_wait("until it is done, if that takes longer than ten")


@operation(
    "GET /motifs",
    Rule(
        "sluice:motifs:list",
        READS_OWN,
        "list objects with motifs of a project",
        everybody="list objects with motifs of everybody",
    ),
    shapes.ListedObjectPageSerializer,
    query_limit("objects on a page"),
    MARKER,
    query_text("account", "only those of this account, or project; the token's own, for who may see no others"),
    query_text("container", "only those of this container of that account"),
)
def list_motifs(view: View, request: Request) -> Response:
    """List objects with motifs, as the daemons know them.

    A page of objects.
    """
    accounts = visible_accounts(request, "sluice:motifs:list")
    page = motifs.page_objects(view.backend, accounts, **view.given)
    return Response({"objects": page.records, "next_marker": page.next_marker or None})


@operation(
    "GET /motifs/templates",
    Rule("sluice:motifs:templates", READER, "list templates of motifs"),
    shapes.TemplateListSerializer,
)
def list_motif_templates(view: View, request: Request) -> Response:
    """List the templates that motifs can be made of: those that every daemon knows.

    The templates, by keyword.
    """
    known = view.backend.motifs
    templates = shapes.TemplateSerializer.render_all(known.templates().values() if known else ())
    return Response({"templates": templates, "daemons": len(known.daemons()) if known else 0})


class MotifView(View):
    """The motifs of one object."""

    def path(self, request: Request, account: str, container: str, object_name: str) -> motifs.ObjectPath:
        """The object, about which the caller may do what the method's rule guards.

        :raises Forbidden: when the rule does not allow it
        """
        found = account_of(self.backend.native, account)
        authorize(request, self.rule, thing_target(OBJECT, found))
        return motifs.ObjectPath(found, container, object_name)


@operation(
    "GET /motifs/<name:account>/<name:container>/<target:object_name>",
    Rule("sluice:motifs:show", READS_OWN, "show the motifs of an object", about=THING),
    shapes.MotifObjectSerializer,
    *_PATH,
    query_flag("why", "say whether its bytes could go now, and what stands in the way"),
)
def show_motif(view: MotifView, request: Request, **path: str) -> Response:
    """Show the motifs of an object, and whether its bytes are there.

    The object.
    """
    return Response(motifs.show_object(view.backend, view.path(request, **path), view.given["why"]))


@operation(
    "PUT /motifs/<name:account>/<name:container>/<target:object_name>",
    Rule("sluice:motifs:attach", WRITES_OBJECTS, "attach a motif to an object", about=THING),
    shapes.MotifObjectSerializer,
    *_PATH,
    takes=shapes.NewMotifSerializer,
    examples=shapes.MOTIFS,
)
def attach_motif(view: MotifView, request: Request, **path: str) -> Response:
    """Attach a motif to an object, beside those that it has.

    Its sources are read with your rights, those that you have when they are read; an administrator's read all.
    """
    where = view.path(request, **path)
    body = Body(request.data, "template", "params")
    identity = motifs.identity_text(view.backend, request.user, where.account)
    found = motifs.attach_motif(view.backend, where, body.text("template"), body.scalars("params"), identity)
    return Response(found)


@operation(
    "POST /motifs/<name:account>/<name:container>/<target:object_name>",
    Rule("sluice:motifs:act", WRITES_OBJECTS, "expand or contract an object", about=THING),
    shapes.MotifObjectSerializer,
    *_PATH,
    _WAIT,
    takes=shapes.ActionSerializer,
    examples=shapes.MOTIF_ACTIONS,
)
def act_on_motif(view: MotifView, request: Request, **path: str) -> Response:
    """Make the bytes of an object again, or give them up.

    What takes longer than the answer waits goes on, and the answer is 503.
    """
    where = view.path(request, **path)
    body = Body(request.data, "action", "verify")
    action = body.one_of("action", shapes.ACTIONS)
    if action == EXPAND:
        if body.has("verify"):
            raise CallerError("`verify` is said of contractions, and the action is `expand`")
        return Response(motifs.call_daemon(view.backend, EXPAND, view.seconds, item=str(where)))
    verify = body.one_of("verify", VERIFICATIONS, "head")
    return Response(motifs.call_daemon(view.backend, CONTRACT, view.seconds, item=str(where), verify=verify))


@operation(
    "DELETE /motifs/<name:account>/<name:container>/<target:object_name>",
    Rule("sluice:motifs:detach", WRITES_OBJECTS, "detach motifs from an object", about=THING),
    shapes.MotifObjectSerializer,
    *_PATH,
    query_text("template", "only motifs of this template; else all"),
    _WAIT,
)
def detach_motif(view: MotifView, request: Request, **path: str) -> Response:
    """Detach motifs from an object, whose bytes are made before where they are gone.

    The object as it is then.
    """
    where = view.path(request, **path)
    template = view.given["template"]
    return Response(motifs.call_daemon(view.backend, DETACH, view.seconds, item=str(where), template=template))


# ``/motifs/operations``: expansions of many objects.

_ID: Final = in_path("operation", "the id of the operation")
_SHAPE: Final = shapes.MotifOperationSerializer


@operation(
    "GET /motifs/operations",
    Rule("sluice:motif_operations:list", ADMIN, "list expansions of many objects"),
    shapes.MotifOperationPageSerializer,
    query_limit("operations on a page"),
    MARKER,
    query_word("state", "only operations in this state", shapes.OPERATION_STATES),
)
def list_motif_operations(view: View, request: Request) -> Response:
    """List expansions of many objects, oldest first.

    A page of operations. The last of those that have ended are kept.
    """
    return Response(shapes.MotifOperationPageSerializer.render(motifs.page_operations(view.backend, **view.given)))


@operation(
    "POST /motifs/operations",
    Rule("sluice:motif_operations:create", ADMIN, "have all objects of an account or the cluster expanded"),
    {202: _SHAPE},
    header("Location", "path of the operation", 202),
    takes=shapes.NewOperationSerializer,
    examples=shapes.OPERATIONS,
)
def expand_motifs(view: View, request: Request) -> Response:
    """Have all contracted objects of the cluster, an account or a container expanded.

    Before Sluice is taken out, say; delete the policies about `elasticity` before, which would contract them again.
    """
    made = motifs.order_expansion(view.backend, request.data, request.user.name)
    headers = {"Location": url_path("motifs", "operations", made.id)}
    return Response(_SHAPE.render(made), HTTPStatus.ACCEPTED, headers=headers)


@operation(
    "GET /motifs/operations/<str:operation>",
    Rule("sluice:motif_operations:show", ADMIN, "show an expansion of many objects"),
    _SHAPE,
    _ID,
    query_wait("until it has ended"),
)
def show_motif_operation(view: View, request: Request, operation: str) -> Response:
    """Show how far an expansion of many objects is.

    The operation.
    """
    return Response(_SHAPE.render(motifs.find_operation(view.backend, operation, view.seconds)))


@operation(
    "POST /motifs/operations/<str:operation>/cancel",
    Rule("sluice:motif_operations:cancel", ADMIN, "end an expansion of many objects"),
    _SHAPE,
    _ID,
    takes=None,
)
def cancel_motif_operation(view: View, request: Request, operation: str) -> Response:
    """End an expansion of many objects; what was expanded stays so.

    The operation.
    """
    return Response(_SHAPE.render(motifs.cancel_expansion(view.backend, operation)))


# ``/spaces``: what is kept below a size.


@operation(
    "GET /spaces",
    Rule("sluice:spaces:list", READS_OWN, "list the spaces of a project", everybody="list the spaces of everybody"),
    shapes.SpacePageSerializer,
    *LIST,
)
def list_spaces(view: View, request: Request) -> Response:
    """List spaces: what they are kept at, hold and cost, as the daemons that keep them report it.

    A page of spaces.
    """
    accounts = visible_accounts(request, "sluice:spaces:list")
    return Response(shapes.SpacePageSerializer.render(motifs.page_spaces(view.backend, accounts, **view.given)))


@operation(
    "GET /spaces/<target:space>",
    Rule("sluice:spaces:show", READS_OWN, "show a space", about=THING),
    shapes.SpaceSerializer,
    in_path("space", "account/container, account, or CLUSTER; a project's name may stand for its account"),
)
def show_space(view: View, request: Request, space: str) -> Response:
    """Show what a space is kept at, holds and costs.

    The space.
    """
    space = motifs.named_space(view.backend, space)
    account = motifs.account_of_space(space)
    level = CONTAINER if "/" in space else TENANT if account else CLUSTER
    authorize(request, view.rule, thing_target(level, account))
    return Response(shapes.SpaceSerializer.render(motifs.find_space(view.backend, space)))


@operation(
    "GET /spaces/metrics",
    Rule("sluice:spaces:metrics", ADMIN, "give Prometheus what spaces hold and cost"),
    {(200, TEXT): OpenApiTypes.STR},
)
def space_metrics(view: TextView, request: Request) -> Response:
    """Give what spaces are kept at, hold and cost, in Prometheus' text format.

    Names of accounts and containers are in it.
    """
    return Response(prometheus.exposition(view.backend), content_type=CONTENT_TYPE)
