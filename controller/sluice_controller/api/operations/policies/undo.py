"""``/policies/{id}/undo``: one policy as it was before its last change."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from sluice_controller.api.openapi import WAIT, header, operation, query_flag
from sluice_controller.api.resources import render_entry
from sluice_controller.api.serializers.cluster.changes import OutcomeSerializer
from sluice_controller.api.view import View
from sluice_controller.configuration.configuration import replace_configuration
from sluice_controller.configuration.policy_undo import policy_before_last_change
from sluice_controller.identity.rules import THING, WRITES_OWN, Rule


@operation(
    "POST /policies/<str:policy_id>/undo",
    Rule("sluice:policies:undo", WRITES_OWN, "undo the last change of a policy", about=THING),
    OutcomeSerializer,
    query_flag("plan", "only say what would change"),
    WAIT,
    header("If-Match", "the `ETag` that the configuration must still have"),
    header("ETag", "the version of the configuration, for `If-Match`", 200),
    takes=None,
)
def undo_policy(view: View, request: Request, policy_id: str) -> Response:
    """Undo the last change of a policy, whoever made it; other policies stay as they are.

    What was changed. A policy that was deleted comes back under its id, one that was created is deleted. Done
    twice, it brings back what it undid. A sentence that would not be accepted any more is refused.
    """
    wanted = policy_before_last_change(view.backend, policy_id, view.plan_authorizer(request))
    outcome = replace_configuration(view.backend, wanted, request.user.name, **view.given)
    view.wait_acknowledged(outcome.epoch)
    return render_entry(OutcomeSerializer.render(outcome, plan=view.given["plan"]), outcome.version)
