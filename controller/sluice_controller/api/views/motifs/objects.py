"""``/motifs``: objects with motifs, and what may be attached."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import MARKER, in_path, operation, query_flag, query_limit, query_text, query_wait
from sluice_controller.api.permissions import authorize, thing_target, visible_accounts
from sluice_controller.api.serializers import motifs as shapes
from sluice_controller.api.views.base import View
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.motifs import objects
from sluice_controller.validation.bodies import Body
from sluice_core.errors import CallerError
from sluice_core.messages.elasticity import VERIFICATIONS
from sluice_core.messages.policies import OBJECT
from sluice_core.motifs.messages import CONTRACT, DETACH, EXPAND

_PATH = (
    in_path("account", "an account, or the name of a project"),
    in_path("container", "the name of a container"),
    in_path("object_name", "the name of an object; it may hold slashes"),
)
_WAIT = query_wait("until it is done, if that takes longer than ten")


class MotifsView(View):
    """All objects with motifs."""

    @operation(
        "sluice:motifs:list",
        "list_motifs",
        shapes.ListedObjectPageSerializer,
        query_limit("objects on a page"),
        MARKER,
        query_text("account", "only those of this account, or project; the token's own, for who may see no others"),
        query_text("container", "only those of this container of that account"),
    )
    def get(self, request: Request) -> Response:
        """List objects with motifs, as the daemons know them.

        A page of objects.
        """
        accounts = visible_accounts(request, "sluice:motifs:list")
        page = objects.page(self.backend, accounts, **self.given)
        return Response({"objects": page.records, "next_marker": page.next_marker or None})


class TemplatesView(View):
    """All templates."""

    @operation("sluice:motifs:templates", "list_motif_templates", shapes.TemplateListSerializer)
    def get(self, request: Request) -> Response:
        """List the templates that motifs can be made of: those that every daemon knows.

        The templates, by keyword.
        """
        known = self.backend.motifs
        templates = shapes.TemplateSerializer.render_all(known.templates().values() if known else ())
        return Response({"templates": templates, "daemons": len(known.daemons()) if known else 0})


class MotifView(View):
    """The motifs of one object."""

    @operation(
        "sluice:motifs:show",
        "show_motif",
        shapes.MotifObjectSerializer,
        *_PATH,
        query_flag("why", "say whether its bytes could go now, and what stands in the way"),
        errors=(404,),
    )
    def get(self, request: Request, **path: str) -> Response:
        """Show the motifs of an object, and whether its bytes are there.

        The object.
        """
        return Response(objects.show(self.backend, self.path(request, **path), self.given["why"]))

    @operation(
        "sluice:motifs:attach",
        "attach_motif",
        shapes.MotifObjectSerializer,
        *_PATH,
        errors=(404, 409),
        takes=shapes.NewMotifSerializer,
        examples=shapes.MOTIFS,
    )
    def put(self, request: Request, **path: str) -> Response:
        """Attach a motif to an object, beside those that it has.

        Its sources are read with your rights, those that you have when they are read; an administrator's read all.
        """
        where = self.path(request, **path)
        body = Body(request.data, "template", "params")
        identity = objects.identity_text(self.backend, request.user, where.account)
        found = objects.attach(self.backend, where, body.text("template"), body.scalars("params"), identity)
        return Response(found)

    @operation(
        "sluice:motifs:act",
        "act_on_motif",
        shapes.MotifObjectSerializer,
        *_PATH,
        _WAIT,
        errors=(404, 409),
        takes=shapes.ActionSerializer,
        examples=shapes.MOTIF_ACTIONS,
    )
    def post(self, request: Request, **path: str) -> Response:
        """Make the bytes of an object again, or give them up.

        What takes longer than the answer waits goes on, and the answer is 503.
        """
        where = self.path(request, **path)
        body = Body(request.data, "action", "verify")
        action = body.one_of("action", shapes.ACTIONS)
        if action == EXPAND:
            if body.has("verify"):
                raise CallerError("`verify` is said of contractions, and the action is `expand`")
            return Response(objects.call(self.backend, EXPAND, self.seconds, item=str(where)))
        verify = body.one_of("verify", VERIFICATIONS, "head")
        return Response(objects.call(self.backend, CONTRACT, self.seconds, item=str(where), verify=verify))

    @operation(
        "sluice:motifs:detach",
        "detach_motif",
        shapes.MotifObjectSerializer,
        *_PATH,
        query_text("template", "only motifs of this template; else all"),
        _WAIT,
        errors=(404, 409),
    )
    def delete(self, request: Request, **path: str) -> Response:
        """Detach motifs from an object, whose bytes are made before where they are gone.

        The object as it is then.
        """
        where = self.path(request, **path)
        template = self.given["template"]
        return Response(objects.call(self.backend, DETACH, self.seconds, item=str(where), template=template))

    def path(self, request: Request, account: str, container: str, object_name: str) -> objects.ObjectPath:
        """The object, about which the caller may do what the method's rule guards.

        :raises Forbidden: when the rule does not allow it
        """
        found = account_of(self.backend.native, account)
        authorize(request, self.rule(request), thing_target(OBJECT, found))
        return objects.ObjectPath(found, container, object_name)
