"""The shapes of policies: sentences, what became of them, and what is wrong with them."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import (
    PARAMS_TEXT,
    MillisecondsField,
    PageSerializer,
    Serializer,
    UnixTimeField,
    computed,
    examples,
    page_of,
    params_text,
)
from sluice_controller.catalog.policy_statuses import STATES
from sluice_controller.catalog.selectors import PolicyView
from sluice_core.describe import ALL_PLACES, KINDS, WORLDS
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.plan import Plan
from sluice_dsl.syntax.keywords import QUOTED


class ProblemSerializer(Serializer):
    """One error or warning in a policy's text; line and columns count from 1."""

    message = s.CharField()
    line = s.IntegerField(min_value=1)
    column = s.IntegerField(min_value=1)
    end_column = computed(
        lambda problem: problem.column + problem.length,
        s.IntegerField(min_value=1, help_text="one behind the last character that is meant"),
    )
    caret = s.CharField(help_text="the line of the text and, below it, carets under what is meant")
    near_miss = s.CharField(allow_blank=True, help_text="what was probably meant; empty when nothing is near")
    severity = s.ChoiceField(("error", "warning"))
    code = s.CharField(help_text="kind of the problem, for programs")


class ErrorDetailSerializer(Serializer):
    """What went wrong."""

    code = s.IntegerField(help_text="the HTTP status")
    title = s.CharField(help_text="the status in words")
    message = s.CharField()
    problems = ProblemSerializer(many=True, help_text="empty unless the text of a policy is at fault")


class ErrorSerializer(Serializer):
    """The body of every answer from 400 on."""

    error = ErrorDetailSerializer()


class PolicyTextSerializer(Serializer):
    """One or several sentences; several are accepted all together, or not at all."""

    policy = s.CharField()


class RevisionSerializer(Serializer):
    """What is to be another in a policy; what is not named stays."""

    policy = s.CharField(required=False, help_text="one sentence")
    enabled = s.BooleanField(required=False)


#: Accepted as they stand; a test sends them.
REVISIONS: Final = examples(
    ("switch it off", {"enabled": False}),
    ("another text", {"policy": "FOR TENANT AUTH_test DO SET compression WITH engine=lz4"}),
)


class TargetSerializer(Serializer):
    """What a policy is about; `label` are the words of the sentence where they differ from `name`."""

    level = s.ChoiceField(("object", "container", "tenant", "cluster", "volume"))
    select = s.ChoiceField(("name", "group", "all"))
    name = s.CharField(allow_blank=True)
    label = s.CharField(allow_blank=True)


class ActionSerializer(Serializer):
    """One thing that a policy does."""

    kind = s.ChoiceField(KINDS)
    verb = s.ChoiceField(("set", "delete"))
    keyword = s.CharField()
    params = s.DictField(help_text="values in base units, by parameter name")
    params_text = s.CharField(allow_blank=True, help_text=PARAMS_TEXT)
    place = s.ChoiceField(ALL_PLACES)
    about = s.ListField(child=s.ChoiceField(WORLDS), help_text="what of its target it holds for")
    stage = s.IntegerField()
    protective = s.BooleanField()
    life = s.ChoiceField(("persistent", "transient"))

    @classmethod
    def render_actions(cls, plan: Plan, catalogue: Catalogue) -> list[dict[str, Any]]:
        """The actions of ``plan``."""
        return [cls.render(one, params_text=params_text(one, catalogue)) for one in plan.actions]


#: Canonical text has its keywords in upper case, and quotes every name that looks like one.
_KEYWORD: Final = re.compile(rf"{QUOTED}|(?<=\s)(WHEN|SUSTAINED|DO)(?=\s)")


def condition_text(text: str) -> str:
    """What stands behind WHEN in a canonical sentence; empty when it has no WHEN."""
    begin = None
    for match in _KEYWORD.finditer(text):
        if match[1] == "WHEN":
            begin = match.end()
        elif match[1] in ("SUSTAINED", "DO"):
            return "" if begin is None else text[begin : match.start()].strip()
    return ""


class SentenceSerializer(Serializer):
    """What a sentence says."""

    policy = s.CharField(source="text", help_text="canonical text")
    source = s.CharField(help_text="the text as it was written")
    dynamic = s.BooleanField(source="plan.dynamic", help_text="whether an actor watches metrics for it")
    target = TargetSerializer(source="plan.target")
    condition = computed(lambda compiled: condition_text(compiled.text), s.CharField(allow_blank=True))
    sustained = s.FloatField(source="plan.sustained", help_text="seconds for which the condition must hold")
    actions = ActionSerializer(source="plan.actions", many=True)


class CheckedSerializer(SentenceSerializer):
    """A sentence that was checked and not kept."""

    plan = computed(lambda compiled: compiled.plan.to_data(), s.DictField(help_text="the compiled plan"))
    warnings = ProblemSerializer(many=True)


class RefusalSerializer(Serializer):
    """A node that does not enforce a policy, and why."""

    node = s.CharField()
    reason = s.CharField()


class EnforcedSerializer(Serializer):
    """How many of all nodes enforce a policy; each of the others is in one of the lists."""

    total = s.IntegerField()
    nodes = s.IntegerField()
    refused = RefusalSerializer(many=True)
    waiting = s.ListField(child=s.CharField(), help_text="have not acknowledged it yet")
    away = s.ListField(child=s.CharField(), help_text="have not reported for a while")


class FiringSerializer(Serializer):
    """Something that a policy's actor did."""

    at = UnixTimeField()
    what = s.CharField(help_text="set, changed or taken_back")
    member = s.CharField(allow_blank=True)
    window = s.IntegerField()


class ObservedSerializer(Serializer):
    """What a policy's actor saw in its last window; a metric without a value was silent."""

    window = s.IntegerField(help_text="unix time at which the window began")
    values = s.DictField(child=s.FloatField(allow_null=True), help_text="by metric; empty for a group or ALL")
    members = s.DictField(
        child=s.DictField(child=s.FloatField(allow_null=True)),
        help_text="of a group or ALL: by member and metric",
    )
    units = s.DictField(child=s.CharField(), help_text="by metric, as `bytes_per_second`")


class _StoredSentence(NamedTuple):
    """What :class:`SentenceSerializer` reads of a policy that stands."""

    text: str
    source: str
    plan: Plan


class _OriginSerializer(Serializer):
    """Which policy it is, whether it works, and where it came from."""

    id = s.CharField(source="cached.policy.id")
    version = s.IntegerField(source="cached.version", help_text="what `ETag` says")
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
            "what wrote its sentence: `stereotype/<name>`, `deploy/<keyword>`, `bw/<account>` or `slo/<account>`, the "
            "last two with `/<storage policy>` where it is for one; else empty"
        ),
    )


class PolicySerializer(_OriginSerializer, SentenceSerializer):
    """A policy and how it fares."""

    epoch = s.IntegerField(help_text="the change since which it stands as it does")
    enforced = EnforcedSerializer(source="enforcement")
    firings = computed(
        lambda view: view.state.firings if view.state else (),
        FiringSerializer(many=True, help_text="the last 20, newest last"),
    )
    observed = ObservedSerializer(
        allow_null=True, help_text="only of a dynamic policy that is asked for by its id, and a second after that"
    )

    @classmethod
    def render(cls, thing: PolicyView, **given: Any) -> dict[str, Any]:
        """A policy, whose sentence is that of its text and plan."""
        policy, plan = thing.cached.policy, thing.cached.plan
        actions = ActionSerializer.render_actions(plan, thing.catalogue)
        sentence = SentenceSerializer.render(_StoredSentence(policy.text, policy.source, plan), actions=actions)
        return super().render(thing, **sentence, **given)


class PolicyPageSerializer(PageSerializer):
    """A page of policies."""

    policies = PolicySerializer(many=True, source="records")
    total = s.IntegerField(help_text="how many policies there are on all pages")
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


class CompletedActivationSerializer(Serializer):
    """What is called when an action is set and taken back; of a group or ALL `{target}` is each member."""

    keyword = s.CharField()
    url = s.CharField(allow_blank=True)
    undo = s.CharField(allow_blank=True)
    params = s.DictField()
    place = s.ChoiceField(ALL_PLACES)


class InfeasibleSerializer(Serializer):
    """What is missing to keep a promise."""

    shortfall = s.FloatField(help_text="bytes per second")


class ShownPolicySerializer(PolicySerializer):
    """A policy with the activation URL of each action, and whether what it promises can be kept."""

    activations = CompletedActivationSerializer(many=True)
    infeasible = InfeasibleSerializer(
        allow_null=True, help_text="of `bandwidth`: what the cluster cannot carry; else null"
    )
    warnings = ProblemSerializer(many=True, help_text="what keeps it from doing what it says")


class CheckedPolicySerializer(CheckedSerializer):
    """A sentence with the activation URL of each action."""

    activations = CompletedActivationSerializer(many=True)


class CheckResultSerializer(Serializer):
    """One entry per sentence."""

    policies = CheckedPolicySerializer(many=True)
