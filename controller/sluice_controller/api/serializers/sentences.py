"""The shapes of sentences: what they say, what is wrong with them, what they mean, and what may be written next."""

from __future__ import annotations

import re
from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import PARAMS_TEXT, Serializer, computed, examples, params_text
from sluice_controller.policies.checking import CheckedSentence
from sluice_controller.policies.effective import REASONS
from sluice_core.describe import ALL_PLACES, KINDS, RESOURCE_TYPES
from sluice_core.messages.predicate import OPERATORS
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.completion import KINDS as KINDS_OF_WORDS
from sluice_dsl.plan import Plan, metric_clauses
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


class CheckTextSerializer(PolicyTextSerializer):
    """One or several sentences, or the text that an existing policy shall have."""

    replaces = s.CharField(required=False, help_text="the id of that policy")


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
    about = s.ListField(child=s.ChoiceField(RESOURCE_TYPES), help_text="what of its target it holds for")
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


class ConditionSerializer(Serializer):
    """A metric that is compared with a threshold, as it must be for the condition to hold.

    NOT is folded into the operator.  AND and OR are in `condition`.
    """

    metric = s.CharField()
    level = s.CharField(help_text="what it is measured of: tenant, container, volume, cluster, node, …")
    path = s.CharField(
        allow_blank=True, help_text="of which one; empty for the cluster, and for each member of a group or ALL"
    )
    operator = s.ChoiceField(tuple(OPERATORS))
    value = s.FloatField(help_text="in the base unit")
    unit = s.CharField(allow_blank=True, help_text="as `bytes_per_second`; empty when the metric is not known any more")

    @classmethod
    def render_conditions(cls, plan: Plan, catalogue: Catalogue) -> list[dict[str, Any]]:
        """The clauses of the condition of ``plan`` that are about metrics."""
        conditions = []
        for clause in metric_clauses(plan.condition):
            metric = catalogue.metric(clause.reading.metric)
            level, path = plan.measured_at(clause.reading)
            unit = metric.unit if metric else ""
            conditions.append(
                cls.render(clause, metric=clause.reading.metric, level=level, path=path, value=clause.limit, unit=unit)
            )
        return conditions


class SentenceSerializer(Serializer):
    """What a sentence says."""

    policy = s.CharField(source="text", help_text="canonical text")
    source = s.CharField(help_text="the text as it was written")
    dynamic = s.BooleanField(source="plan.dynamic", help_text="whether an actor watches metrics for it")
    target = TargetSerializer(source="plan.target")
    condition = computed(lambda compiled: condition_text(compiled.text), s.CharField(allow_blank=True))
    conditions = ConditionSerializer(many=True, help_text="what metrics are compared with, from left to right")
    sustained = s.FloatField(source="plan.sustained", help_text="seconds for which the condition must hold")
    actions = ActionSerializer(source="plan.actions", many=True)


class CompletedActivationSerializer(Serializer):
    """What is called when an action is set and taken back; of a group or ALL `{target}` is each member."""

    keyword = s.CharField()
    url = s.CharField(allow_blank=True)
    undo = s.CharField(allow_blank=True)
    params = s.DictField()
    place = s.ChoiceField(ALL_PLACES)


class ExplanationSerializer(Serializer):
    """What a sentence says of one thing, in words."""

    about = s.CharField(help_text="`target`, `kind`, `fires`, `action 1` and so on, `order`")
    text = s.CharField()


class OverriddenActionSerializer(Serializer):
    """An action that would not hold any more where and while a sentence does, or an action of it by another policy."""

    policy = s.CharField(help_text="the other policy")
    kind = s.ChoiceField(KINDS)
    keyword = s.CharField()
    reason = s.ChoiceField(REASONS)


class CheckedPolicySerializer(SentenceSerializer):
    """A sentence that was checked and not kept."""

    plan = computed(lambda compiled: compiled.plan.to_data(), s.DictField(help_text="the compiled plan"))
    warnings = ProblemSerializer(many=True)
    activations = CompletedActivationSerializer(many=True, help_text="the activation URL of each action")
    explanation = ExplanationSerializer(many=True)
    overrides = OverriddenActionSerializer(many=True, help_text="actions of other policies that it takes the place of")
    overridden_by = OverriddenActionSerializer(
        many=True, help_text="its own actions that others take the place of, where they speak of less or are newer"
    )
    more_overridden = s.BooleanField(help_text="whether there may be others, which are not named")
    refusal = s.CharField(allow_blank=True, help_text="why the caller may not save it; empty when he may")

    @classmethod
    def render_checked(cls, checked: CheckedSentence, catalogue: Catalogue, **given: Any) -> dict[str, Any]:
        """A sentence with what it means; ``activations`` and ``refusal`` are given."""
        compiled = checked.compiled
        return cls.render(
            compiled,
            actions=ActionSerializer.render_actions(compiled.plan, catalogue),
            conditions=ConditionSerializer.render_conditions(compiled.plan, catalogue),
            explanation=[{"about": about, "text": text} for about, text in checked.explanation.items()],
            overrides=OverriddenActionSerializer.render_all(checked.preview.overrides),
            overridden_by=OverriddenActionSerializer.render_all(checked.preview.overridden_by),
            more_overridden=checked.preview.more,
            **given,
        )


class CheckResultSerializer(Serializer):
    """One entry per sentence."""

    policies = CheckedPolicySerializer(many=True)


class CompletionTextSerializer(Serializer):
    """A text that is being written."""

    policy = s.CharField(allow_blank=True)
    position = s.IntegerField(min_value=0, help_text="how many characters stand before the place")


#: Accepted as they stand; a test sends them.
COMPLETIONS: Final = examples(("a target", {"policy": "FOR TEN", "position": 7}))


class CandidateSerializer(Serializer):
    """Something that may be written at the place."""

    text = s.CharField(help_text="as it is inserted")
    kind = s.ChoiceField(KINDS_OF_WORDS)
    label = s.CharField(help_text="as it is shown")
    help = s.CharField(allow_blank=True)


class CompletionSerializer(Serializer):
    """What may stand in place of the characters from `start` to before `end`."""

    start = s.IntegerField()
    end = s.IntegerField()
    candidates = CandidateSerializer(many=True)
    more = s.BooleanField(help_text="whether there are others, which more letters tell apart")
