"""The shapes of ``GET /effective``: the actions that hold for a request, and the overridden ones with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import PARAMS_TEXT, Serializer, computed, params_text
from sluice_controller.api.serializers.sentences import TargetSerializer, condition_text
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_controller.code.controllers import controller_of
from sluice_controller.policies.effective import (
    CONDITION,
    DELETED,
    DISABLED,
    NARROWER,
    NEWER,
    NO_VALUE,
    REASONS,
    UNKNOWN,
    WAITING,
    Effective,
    Overridden,
    decided_by,
)
from sluice_core.describe import ALL_PLACES, KINDS
from sluice_core.messages.policies import Assignment
from sluice_dsl.catalogue.base import Catalogue

_MESSAGES: Final = {
    DISABLED: "the policy is disabled",
    WAITING: "its actor has set nothing here, and has not said yet what it observes",
    NO_VALUE: "its actor has set nothing here: one of its metrics has no value",
    CONDITION: "its condition does not hold",
    UNKNOWN: "its condition needs a property that is not known of this request",
    NEWER: "a newer policy sets the same keyword for the same target",
    DELETED: "a DELETE removes it",
    NARROWER: "a policy of a narrower scope decides this kind",
}
#: Reasons that do not depend on the policy's condition.
_NOT_ITS_OWN: Final = (DISABLED, NEWER, DELETED, NARROWER)


class PlaceSerializer(Serializer):
    """The target of a request."""

    account = s.CharField()
    container = s.CharField(allow_blank=True)
    object = s.CharField(allow_blank=True)
    volume = s.CharField(allow_blank=True, help_text="its id")


class FactsSerializer(Serializer):
    """The known properties of the request; null is unknown."""

    method = s.CharField()
    size = s.IntegerField(allow_null=True)
    type = s.CharField(source="content_type", allow_null=True)
    tags = computed(
        lambda facts: None if facts.tags is None else sorted(facts.tags),
        s.ListField(child=s.CharField(), allow_null=True),
    )
    compressibility = s.FloatField(allow_null=True)


class _SetterSerializer(Serializer):
    """The policy or controller that has set an action."""

    policy = s.CharField(help_text="`controller:<name>` if a controller has set it")
    controller = computed(
        lambda action: controller_of(action.policy),
        s.CharField(allow_blank=True, help_text="the controller that has set it, otherwise empty"),
    )


class StepSerializer(_SetterSerializer):
    """An action that holds."""

    assignment = s.CharField(source="id")
    verb = s.ChoiceField(("set", "delete"))
    keyword = s.CharField()
    params = s.DictField(help_text="values in base units, by parameter name")
    params_text = s.CharField(allow_blank=True, help_text=PARAMS_TEXT)
    place = s.ChoiceField(ALL_PLACES)
    stage = s.IntegerField()
    protective = s.BooleanField(help_text="inherited by narrower scopes")
    target = TargetSerializer()
    member = s.CharField(allow_blank=True)

    @classmethod
    def render_steps(cls, assignments: Iterable[Assignment], catalogue: Catalogue) -> list[dict[str, Any]]:
        """Actions that hold."""
        return [cls.render(one, params_text=params_text(one, catalogue)) for one in assignments]


class OverriddenSerializer(_SetterSerializer):
    """An action that does not hold."""

    assignment = computed(
        lambda overridden: overridden.assignment.id if overridden.assignment else "",
        s.CharField(allow_blank=True, help_text="empty if its policy has set nothing here"),
    )
    keyword = s.CharField()
    reason = s.ChoiceField(REASONS)
    by = s.ListField(child=s.CharField(), help_text="the policies that override it")
    message = s.CharField()
    observed = s.DictField(
        child=s.FloatField(allow_null=True), help_text="the metric values that its actor observed; null is silence"
    )


class VerdictSerializer(Serializer):
    """The actions of one kind that hold."""

    kind = s.ChoiceField(KINDS)
    decided_by = computed(
        lambda verdict: decided_by(verdict.pipeline, verdict.deletes),
        s.ListField(child=s.CharField(), help_text="policies"),
    )
    pipeline = StepSerializer(many=True, help_text="in the order of a PUT")
    deletes = StepSerializer(many=True, help_text="DELETE actions that hold")
    overridden = OverriddenSerializer(many=True)
    more = s.IntegerField(help_text="number of overridden actions that are not shown")


class EffectiveSerializer(Serializer):
    """The actions that hold for a request, and the overridden ones with the reason."""

    target = PlaceSerializer(source="place")
    request = FactsSerializer(source="facts")
    epoch = s.IntegerField(help_text="the newest change that the answer includes")
    kinds = VerdictSerializer(many=True)

    @classmethod
    def render_effective(
        cls, effective: Effective, contents: CacheContents, catalogue: Catalogue, most: int
    ) -> dict[str, Any]:
        """The whole answer; at most ``most`` overridden actions of each kind."""
        kinds = []
        for verdict in effective.verdicts:
            overridden = [
                OverriddenSerializer.render(one, message=_message(one, contents)) for one in verdict.overridden[:most]
            ]
            more = max(0, len(verdict.overridden) - most)
            pipeline, deletes = (
                StepSerializer.render_steps(steps, catalogue) for steps in (verdict.pipeline, verdict.deletes)
            )
            kinds.append(
                VerdictSerializer.render(verdict, pipeline=pipeline, deletes=deletes, overridden=overridden, more=more)
            )
        return cls.render(effective, kinds=kinds)


def _message(overridden: Overridden, contents: CacheContents) -> str:
    """Why an action does not hold, with the policy's condition if that is the reason."""
    message = _MESSAGES[overridden.reason]
    cached = contents.policies.get(overridden.policy)
    condition = condition_text(cached.policy.text) if cached else ""
    return f"{message}: `{condition}`" if condition and overridden.reason not in _NOT_ITS_OWN else message
