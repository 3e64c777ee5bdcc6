"""``/policies/check`` and ``/policies/complete``: help while a sentence is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import SENTENCES, operation
from sluice_controller.api.permissions import current_rules, plan_target, refusal_of
from sluice_controller.api.serializers import sentences
from sluice_controller.api.view import View
from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_controller.identity.caller import Identity
from sluice_controller.identity.rules import READER, READS_OWN, THING, Rule
from sluice_controller.policies import checking
from sluice_controller.registry import activations
from sluice_controller.validation.bodies import Body, policy_text
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.completion import complete


@operation(
    "POST /policies/check",
    Rule("sluice:policies:check", READS_OWN, "check sentences", about=THING),
    sentences.CheckResultSerializer,
    errors=(404, 409),
    takes=sentences.CheckTextSerializer,
    examples=SENTENCES,
)
def check_policies(view: View, request: Request) -> Response:
    """Check sentences; changes nothing.

    The answer has the plans of the sentences, their meaning in words, the actions of other policies that they would
    override, and whether the caller may save them. `replaces` names the policy whose text is to be changed.
    """
    text = policy_text(request.data, settings.SLUICE.text_limit, "replaces")
    body = Body(request.data, "policy", "replaces")
    replaces = body.text("replaces") if body.has("replaces") else ""
    checked = checking.check_text(view.backend, text, replaces, view.plan_authorizer(request))
    contents = view.backend.policy_cache.contents()
    catalogue = view.backend.described(contents)
    saving = "sluice:policies:update" if replaces else "sluice:policies:create"
    data = [
        sentences.CheckedPolicySerializer.render_checked(
            sentence,
            catalogue,
            activations=activations.activation_calls(sentence.compiled.plan, contents.entries),
            refusal=refusal_of(request.user, saving, plan_target(sentence.compiled.plan, contents.uploads)),
        )
        for sentence in checked
    ]
    return Response({"policies": data})


@operation(
    "POST /policies/complete",
    Rule("sluice:policies:complete", READER, "list the words that may follow in a sentence"),
    sentences.CompletionSerializer,
    takes=sentences.CompletionTextSerializer,
    examples=sentences.COMPLETIONS,
    errors=(),
)
def complete_policy(view: View, request: Request) -> Response:
    """List the words that may be written at a position of a text.

    Keywords and signs that the grammar allows there, and the names that are valid there: at most 100. Each can be
    inserted at that position without a syntax error. Names of groups, nodes, tenants and volumes are shown only to
    callers that may list these objects.
    """
    body = Body(request.data, "policy", "position")
    text = body.text("policy", "", settings.SLUICE.text_limit)
    position = body.whole("position", 0, len(text))
    contents = view.backend.policy_cache.contents()
    catalogue = nameable_words(request.user, view.backend.vocabulary(contents), contents.ordered)
    return Response(sentences.CompletionSerializer.render(complete(text, position, catalogue)))


def nameable_words(identity: Identity, catalogue: Catalogue, policies: Iterable[CachedPolicy]) -> Catalogue:
    """``catalogue`` with the tenants of ``policies``, without the names that the identity may not list."""
    rules = current_rules()
    if not rules.allows(identity, "sluice:groups:list", {}):
        catalogue = replace(catalogue, groups={})
    if not rules.allows(identity, "sluice:nodes:list", {}):
        catalogue = replace(catalogue, known_nodes=tuple)
    if not rules.allows(identity, "sluice:volumes:list_all", {}):
        catalogue = replace(catalogue, volume_names=tuple)
    if not rules.allows(identity, "sluice:policies:list_all", {}):
        own = identity.project_name
        return replace(catalogue, tenants={own: own} if own else {})
    named = {label or account: account for one in policies if one.tenants for account, label in (one.tenants,)}
    return replace(catalogue, tenants={**dict.fromkeys(catalogue.tenants, ""), **named})
