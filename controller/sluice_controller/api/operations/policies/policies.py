"""``/policies``: policies made from sentences, and the rollback of a policy's last change."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, PolymorphicProxySerializer
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import (
    MARKER,
    SENTENCES,
    WAIT,
    header,
    operation,
    query_flag,
    query_limit,
    query_text,
    query_word,
)
from sluice_controller.api.permissions import visible_accounts
from sluice_controller.api.resources import no_content, render_entry
from sluice_controller.api.serializers import policies as shapes
from sluice_controller.api.serializers import sentences
from sluice_controller.api.serializers.changes import OutcomeSerializer
from sluice_controller.api.view import View
from sluice_controller.catalog.policy_cache import STATES
from sluice_controller.configuration.changes import policy_before_last_change
from sluice_controller.configuration.configuration import replace_configuration
from sluice_controller.identity.rules import READS_OWN, THING, WRITES_OWN, Rule
from sluice_controller.policies import bandwidth_checks, idempotency, policy_update, selectors, services
from sluice_controller.registry import activations, takeovers
from sluice_controller.validation.bodies import policy_text

#: Kinds of entries in the log of an actor.
FIRING_KINDS = ("set", "changed", "taken_back")
LOCATION = header("Location", "path of the new policy, or of the list when there are several", 201)
REPEATED = OpenApiParameter(
    idempotency.HEADER,
    idempotency.FORM,
    OpenApiParameter.HEADER,
    description="a text that identifies this request, the same when the request is repeated",
)
ETAG = header("ETag", "the policy's version, for `If-Match`; it changes with its text, not with its state", 200, 201)
CREATED = PolymorphicProxySerializer(
    "Creation", [shapes.CreatedSerializer, shapes.CreatedListSerializer], resource_type_field_name=None
)


def read_text(request: Request) -> str:
    """The sentences in the body."""
    return policy_text(request.data, settings.SLUICE.text_limit)


@operation(
    "GET /policies",
    Rule("sluice:policies:list", READS_OWN, "list policies", everybody="list the policies of all projects"),
    shapes.PolicyPageSerializer,
    query_limit("policies on a page"),
    MARKER,
    query_text("before", "`previous_marker` of the page after this one, in place of `marker`"),
    query_word("order", "which policies come first", selectors.ORDERS, default=selectors.OLDEST),
    query_text("tenant", "only policies about this tenant and its containers and objects"),
    query_word("state", "only policies in this state", STATES),
    query_text("text", "only policies whose sentence contains this text, in any case"),
)
def list_policies(view: View, request: Request) -> Response:
    """List policies, by age.

    A page of policies.
    """
    accounts = visible_accounts(request, view.rule)
    chosen = {name: view.given.pop(name) for name in ("tenant", "state", "text")}
    page = selectors.list_policies(view.backend, selectors.PolicyFilter(**chosen, accounts=accounts), **view.given)
    return Response(shapes.PolicyPageSerializer.render(page))


@operation(
    "POST /policies",
    Rule("sluice:policies:create", WRITES_OWN, "create policies", about=THING),
    {201: CREATED},
    WAIT,
    REPEATED,
    LOCATION,
    ETAG,
    takes=sentences.PolicyTextSerializer,
    examples=SENTENCES,
)
def create_policies(view: View, request: Request) -> Response:
    """Create policies: all sentences of the text, or none.

    With `Idempotency-Key`, a text that the same identity sent before under the same key creates nothing:
    the answer shows, without warnings, the policies of the first request that still exist. So a client without an
    answer can repeat its request.
    """
    text, by, allow = read_text(request), request.user.name, view.plan_authorizer(request)
    key = idempotency.read_key(request)
    if key:
        written = idempotency.create_once(view.backend, text, by, key, allow)
    else:
        written = services.create_policies(view.backend, text, by, allow)
    view.wait_acknowledged(written.epoch)
    views = written.views(view.backend)
    data = [
        shapes.CreatedSerializer.render(one, warnings=sentences.ProblemSerializer.render_all(warnings))
        for one, warnings in zip(views, written.warnings, strict=True)
    ]
    if len(data) > 1:
        return Response({"policies": data}, HTTPStatus.CREATED, headers={"Location": "/policies"})
    return render_entry(data[0], data[0]["version"], f"/policies/{data[0]['id']}")


@operation(
    "GET /policies/<str:policy_id>",
    Rule("sluice:policies:show", READS_OWN, "show a policy", about=THING),
    shapes.ShownPolicySerializer,
    ETAG,
)
def show_policy(view: View, request: Request, policy_id: str) -> Response:
    """Show a policy, the values that its actor observes, and the nodes that enforce it.

    The policy.
    """
    shown = selectors.find_policy(view.backend, policy_id)
    view.plan_authorizer(request)([shown.cached.plan])
    calls = activations.activation_calls(shown.cached.plan, view.backend.policy_cache.contents().entries)
    status = bandwidth_checks.bandwidth_status(view.backend, shown.cached)
    status["warnings"] += selectors.attribute_warnings(view.backend, shown.cached)
    status["warnings"] += takeovers.takeover_warnings(view.backend, shown.cached)
    data = shapes.ShownPolicySerializer.render(shown, activations=calls, **status)
    return render_entry(data, data["version"])


@operation(
    "PUT /policies/<str:policy_id>",
    Rule("sluice:policies:update", WRITES_OWN, "change the text of a policy, or switch it on or off", about=THING),
    shapes.CreatedSerializer,
    WAIT,
    header("If-Match", "the `ETag` that the policy must still have"),
    ETAG,
    takes=shapes.RevisionSerializer,
    examples=shapes.REVISIONS,
)
def update_policy(view: View, request: Request, policy_id: str) -> Response:
    """Change the text of a policy, or switch it on or off.

    Its id and its age stay. The assignments of the policy are taken back in the same change; an actor starts anew.
    A disabled policy sets nothing. A request that would change nothing is no change.
    """
    revision = policy_update.PolicyUpdate.read(request.data, settings.SLUICE.text_limit)
    expected, allow = view.given["expected"], view.plan_authorizer(request)
    written = policy_update.update_policy(view.backend, policy_id, request.user.name, revision, expected, allow)
    view.wait_acknowledged(written.epoch)
    (policy,) = written.views(view.backend)
    policy = replace(policy, state=view.backend.store.state(policy_id))
    data = shapes.CreatedSerializer.render(policy, warnings=sentences.ProblemSerializer.render_all(written.warnings[0]))
    return render_entry(data, data["version"])


@operation(
    "DELETE /policies/<str:policy_id>",
    Rule("sluice:policies:delete", WRITES_OWN, "delete a policy", about=THING),
    {200: shapes.PolicySerializer, 204: OpenApiResponse(description="deleted")},
    query_flag("keep", "keep the actions in force, under a new static policy"),
    WAIT,
    header("If-Match", "the `ETag` that the policy must still have"),
    ETAG,
)
def delete_policy(view: View, request: Request, policy_id: str) -> Response:
    """Delete a policy and take back its assignments.

    With `keep`, the actions that its actor has in force stay: they become a new static policy, which the answer shows
    (200) and which can be deleted in turn. Without an action in force there is no new policy (204).
    """
    change = services.keep_policy if view.given["keep"] else services.delete_policy
    allow = view.plan_authorizer(request)
    written = change(view.backend, policy_id, request.user.name, view.given["expected"], allow)
    view.wait_acknowledged(written.epoch)
    views = written.views(view.backend)
    if not views:
        return no_content()
    return render_entry(shapes.PolicySerializer.render(views[0]), views[0].cached.version)


@operation(
    "GET /policies/<str:policy_id>/firings",
    Rule("sluice:policies:firings", READS_OWN, "list what a policy's actor did", about=THING),
    shapes.FiringPageSerializer,
    query_limit("firings on a page"),
    MARKER,
    query_word("what", "only those of this kind", FIRING_KINDS),
    query_text("member", "only those for this member of a group or of ALL"),
)
def list_firings(view: View, request: Request, policy_id: str) -> Response:
    """List what a policy's actor did, newest first.

    Actors keep the last 20 firings of a policy.
    """
    found = selectors.find_policy(view.backend, policy_id)
    view.plan_authorizer(request)([found.cached.plan])
    known = found.state.firings if found.state else ()
    return Response(shapes.FiringPageSerializer.render(selectors.page_firings(known, **view.given)))


@operation(
    "POST /policies/<str:policy_id>/undo",
    Rule("sluice:policies:undo", WRITES_OWN, "roll back the last change of a policy", about=THING),
    OutcomeSerializer,
    query_flag("plan", "only show the changes, without making them"),
    WAIT,
    header("If-Match", "the `ETag` that the configuration must still have"),
    header("ETag", "the version of the configuration, for `If-Match`", 200),
    takes=None,
)
def undo_policy(view: View, request: Request, policy_id: str) -> Response:
    """Roll back the last change of a policy, by any identity; other policies stay as they are.

    The changes that were made. A deleted policy comes back under its id, a created one is deleted. A second
    rollback restores what the first one rolled back. A sentence that is not valid any more is refused.
    """
    wanted = policy_before_last_change(view.backend, policy_id, view.plan_authorizer(request))
    outcome = replace_configuration(view.backend, wanted, request.user.name, **view.given)
    view.wait_acknowledged(outcome.epoch)
    return render_entry(OutcomeSerializer.render(outcome, plan=view.given["plan"]), outcome.version)
