"""The shapes of policies: their sentences and their state."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import (
    MillisecondsField,
    PageSerializer,
    Serializer,
    UnixTimeField,
    computed,
    examples,
    page_of,
)
from sluice_controller.api.serializers.sentences import (
    ActionSerializer,
    CompletedActivationSerializer,
    ConditionSerializer,
    ProblemSerializer,
    SentenceSerializer,
)
from sluice_controller.catalog.policy_cache import STATES
from sluice_controller.policies.selectors import PolicyView
from sluice_dsl.plan import Plan


class RevisionSerializer(Serializer):
    """The changes of a policy; fields that are not given stay."""

    policy = s.CharField(required=False, help_text="one sentence")
    enabled = s.BooleanField(required=False)


#: A test sends these bodies unchanged.
REVISIONS: Final = examples(
    ("switch it off", {"enabled": False}),
    ("another text", {"policy": "FOR TENANT AUTH_test DO SET compression WITH engine=lz4"}),
)


class RefusalSerializer(Serializer):
    """A node that does not enforce a policy, with the reason."""

    node = s.CharField()
    reason = s.CharField()


class EnforcedSerializer(Serializer):
    """The number of nodes that enforce a policy; each other node is in one of the lists."""

    total = s.IntegerField()
    nodes = s.IntegerField()
    refused = RefusalSerializer(many=True)
    waiting = s.ListField(child=s.CharField(), help_text="have not acknowledged it yet")
    away = s.ListField(child=s.CharField(), help_text="have not reported for a while")


class FiringSerializer(Serializer):
    """One action of a policy's actor."""

    at = UnixTimeField()
    what = s.CharField(help_text="set, changed or taken_back")
    member = s.CharField(allow_blank=True)
    window = s.IntegerField()


class ObservedSerializer(Serializer):
    """The observation of a policy's actor in its last window; a metric without a value was silent."""

    window = s.IntegerField(help_text="Unix time at which the window began")
    values = s.DictField(child=s.FloatField(allow_null=True), help_text="by metric; empty for a group or ALL")
    members = s.DictField(
        child=s.DictField(child=s.FloatField(allow_null=True)),
        help_text="for a group or ALL: by member and metric",
    )
    units = s.DictField(child=s.CharField(), help_text="by metric, as `bytes_per_second`")


class _StoredSentence(NamedTuple):
    """The input of :class:`SentenceSerializer` for an existing policy."""

    text: str
    source: str
    plan: Plan


class _OriginSerializer(Serializer):
    """The id, state and origin of a policy."""

    id = s.CharField(source="cached.policy.id")
    version = s.IntegerField(source="cached.version", help_text="the value of `ETag`")
    state = s.ChoiceField(STATES, source="status")
    enabled = s.BooleanField(source="cached.policy.enabled")
    reason = computed(
        lambda view: view.state.reason if view.state else "", s.CharField(allow_blank=True, help_text="why it failed")
    )
    created_at = MillisecondsField(source="cached.policy.created")
    created_by = s.CharField(source="cached.policy.created_by", allow_blank=True)
    origin = s.CharField(
        source="cached.policy.origin",
        allow_blank=True,
        help_text=(
            "the origin of its sentence: `stereotype/<name>`, `deploy/<keyword>`, `bw/<account>` or `slo/<account>`, "
            "the last two with `/<storage policy>` if it is for one; otherwise empty"
        ),
    )


class PolicySerializer(_OriginSerializer, SentenceSerializer):
    """A policy and its state."""

    epoch = s.IntegerField(help_text="the change that brought it into its present form")
    enforced = EnforcedSerializer(source="enforcement")
    firings = computed(
        lambda view: view.state.firings if view.state else (),
        FiringSerializer(many=True, help_text="the last 20, newest last"),
    )
    observed = ObservedSerializer(
        allow_null=True, help_text="only for a dynamic policy that is shown by its id, a second after the first request"
    )

    @classmethod
    def render(cls, thing: PolicyView, **given: Any) -> dict[str, Any]:
        """A policy, with the sentence of its text and plan."""
        policy, plan = thing.cached.policy, thing.cached.plan
        actions = ActionSerializer.render_actions(plan, thing.catalogue)
        conditions = ConditionSerializer.render_conditions(plan, thing.catalogue)
        stored = _StoredSentence(policy.text, policy.source, plan)
        sentence = SentenceSerializer.render(stored, actions=actions, conditions=conditions)
        return super().render(thing, **sentence, **given)


class PolicyPageSerializer(PageSerializer):
    """A page of policies."""

    policies = PolicySerializer(many=True, source="records")
    total = s.IntegerField(help_text="number of policies on all pages")
    previous_marker = computed(
        lambda page: page.previous_marker or None,
        s.CharField(allow_null=True, help_text="`before` of the page before; null on the first one"),
    )


class CreatedSerializer(PolicySerializer):
    """A new policy."""

    warnings = ProblemSerializer(many=True)


class CreatedListSerializer(Serializer):
    """Several new policies, in the order of their sentences."""

    policies = CreatedSerializer(many=True)


FiringPageSerializer = page_of("firings", FiringSerializer, "A page of firings, newest first.")


class InfeasibleSerializer(Serializer):
    """The bandwidth that an objective lacks."""

    shortfall = s.FloatField(help_text="bytes per second")


class ShownPolicySerializer(PolicySerializer):
    """A policy with the activation URL of each action, and with the bandwidth that its objectives lack."""

    activations = CompletedActivationSerializer(many=True)
    infeasible = InfeasibleSerializer(
        allow_null=True, help_text="for `bandwidth`: the rate that the cluster cannot carry; otherwise null"
    )
    warnings = ProblemSerializer(many=True, help_text="why it does not work as its sentence says")
