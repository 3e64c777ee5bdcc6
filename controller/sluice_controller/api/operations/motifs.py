"""``/motifs``: objects with motifs, templates of motifs, expansions of many objects; ``/spaces``."""

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
    in_path("object_name", "the name of an object; it may contain slashes"),
)
_WAIT = query_wait("until it is done, if that takes longer than ten")


@operation(
    "GET /motifs",
    Rule(
        "sluice:motifs:list",
        READS_OWN,
        "list objects with motifs of a project",
        everybody="list objects with motifs of all projects",
    ),
    shapes.ListedObjectPageSerializer,
    query_limit("objects on a page"),
    MARKER,
    query_text("account", "only of this account or project; by default the caller's own, if it may see no others"),
    query_text("container", "only those of this container of that account"),
)
def list_motifs(view: View, request: Request) -> Response:
    """List objects with motifs, as the daemons report them.

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
    """List the templates for motifs: those that every daemon has.

    The templates, by keyword.
    """
    known = view.backend.motifs
    templates = shapes.TemplateSerializer.render_all(known.templates().values() if known else ())
    return Response({"templates": templates, "daemons": len(known.daemons()) if known else 0})


class MotifView(View):
    """The motifs of one object."""

    def path(self, request: Request, account: str, container: str, object_name: str) -> motifs.ObjectPath:
        """The object, after a check that the caller may use the method's rule on it.

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
    query_flag("why", "whether the object can be contracted now, and the reasons against it"),
)
def show_motif(view: MotifView, request: Request, **path: str) -> Response:
    """Show the motifs of an object, and whether its bytes are stored.

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

    Its sources are read with your rights at the time of reading; with an administrator's rights all can be read.
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
    """Expand an object, which restores its bytes, or contract it, which removes them.

    An action that takes longer than the answer waits continues, and the answer is 503.
    """
    where = view.path(request, **path)
    body = Body(request.data, "action", "verify")
    action = body.one_of("action", shapes.ACTIONS)
    if action == EXPAND:
        if body.has("verify"):
            raise CallerError("`verify` is a parameter of contractions, and the action is `expand`")
        return Response(motifs.call_daemon(view.backend, EXPAND, view.seconds, item=str(where)))
    verify = body.one_of("verify", VERIFICATIONS, "head")
    return Response(motifs.call_daemon(view.backend, CONTRACT, view.seconds, item=str(where), verify=verify))


@operation(
    "DELETE /motifs/<name:account>/<name:container>/<target:object_name>",
    Rule("sluice:motifs:detach", WRITES_OBJECTS, "detach motifs from an object", about=THING),
    shapes.MotifObjectSerializer,
    *_PATH,
    query_text("template", "only motifs of this template; by default all"),
    _WAIT,
)
def detach_motif(view: MotifView, request: Request, **path: str) -> Response:
    """Detach motifs from an object; a contracted object is expanded before.

    The object after that.
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
    Rule("sluice:motif_operations:create", ADMIN, "expand all objects of an account or the cluster"),
    {202: _SHAPE},
    header("Location", "path of the operation", 202),
    takes=shapes.NewOperationSerializer,
    examples=shapes.OPERATIONS,
)
def expand_motifs(view: View, request: Request) -> Response:
    """Expand all contracted objects of the cluster, an account or a container.

    Used for example before Sluice is removed. First delete the policies with `elasticity`, which would contract again.
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
    """Show the progress of an expansion of many objects.

    The operation.
    """
    return Response(_SHAPE.render(motifs.find_operation(view.backend, operation, view.seconds)))


@operation(
    "POST /motifs/operations/<str:operation>/cancel",
    Rule("sluice:motif_operations:cancel", ADMIN, "cancel an expansion of many objects"),
    _SHAPE,
    _ID,
    takes=None,
)
def cancel_motif_operation(view: View, request: Request, operation: str) -> Response:
    """Cancel an expansion of many objects; expanded objects stay expanded.

    The operation.
    """
    return Response(_SHAPE.render(motifs.cancel_expansion(view.backend, operation)))


# ``/spaces``: accounts and containers whose stored size is kept below a limit.


@operation(
    "GET /spaces",
    Rule("sluice:spaces:list", READS_OWN, "list the spaces of a project", everybody="list the spaces of all projects"),
    shapes.SpacePageSerializer,
    *LIST,
)
def list_spaces(view: View, request: Request) -> Response:
    """List spaces with their limit, usage and cost, as the daemons report them.

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
    """Show the limit, usage and cost of a space.

    The space.
    """
    space = motifs.named_space(view.backend, space)
    account = motifs.account_of_space(space)
    level = CONTAINER if "/" in space else TENANT if account else CLUSTER
    authorize(request, view.rule, thing_target(level, account))
    return Response(shapes.SpaceSerializer.render(motifs.find_space(view.backend, space)))


@operation(
    "GET /spaces/metrics",
    Rule("sluice:spaces:metrics", ADMIN, "export the usage and cost of spaces to Prometheus"),
    {(200, TEXT): OpenApiTypes.STR},
)
def space_metrics(view: TextView, request: Request) -> Response:
    """Export the limit, usage and cost of spaces in Prometheus' text format.

    The metrics contain names of accounts and containers.
    """
    return Response(prometheus.exposition(view.backend), content_type=CONTENT_TYPE)
