"""The shapes of sentences: their content, problems and explanation, and the completion of a text."""

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
        s.IntegerField(min_value=1, help_text="one after the last character of the problem"),
    )
    caret = s.CharField(help_text="the line of the text and, below it, carets under the problem")
    near_miss = s.CharField(allow_blank=True, help_text="the word that was probably meant; empty without a similar one")
    severity = s.ChoiceField(("error", "warning"))
    code = s.CharField(help_text="kind of the problem, for programs")


class ErrorDetailSerializer(Serializer):
    """The description of an error."""

    code = s.IntegerField(help_text="the HTTP status")
    title = s.CharField(help_text="the status in words")
    message = s.CharField()
    problems = ProblemSerializer(many=True, help_text="empty unless the text of a policy is wrong")


class ErrorSerializer(Serializer):
    """The body of every answer with a status of 400 or more."""

    error = ErrorDetailSerializer()


class PolicyTextSerializer(Serializer):
    """One or several sentences; several are accepted all together, or not at all."""

    policy = s.CharField()


class CheckTextSerializer(PolicyTextSerializer):
    """One or several sentences, or the new text of an existing policy."""

    replaces = s.CharField(required=False, help_text="the id of that policy")


class TargetSerializer(Serializer):
    """The target of a policy; `label` are the words of the sentence if they differ from `name`."""

    level = s.ChoiceField(("object", "container", "tenant", "cluster", "volume"))
    select = s.ChoiceField(("name", "group", "all"))
    name = s.CharField(allow_blank=True)
    label = s.CharField(allow_blank=True)


class ActionSerializer(Serializer):
    """One action of a policy."""

    kind = s.ChoiceField(KINDS)
    verb = s.ChoiceField(("set", "delete"))
    keyword = s.CharField()
    params = s.DictField(help_text="values in base units, by parameter name")
    params_text = s.CharField(allow_blank=True, help_text=PARAMS_TEXT)
    place = s.ChoiceField(ALL_PLACES)
    about = s.ListField(child=s.ChoiceField(RESOURCE_TYPES), help_text="the objects in its target that it holds for")
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
    """The text after WHEN in a canonical sentence; empty without a WHEN."""
    begin = None
    for match in _KEYWORD.finditer(text):
        if match[1] == "WHEN":
            begin = match.end()
        elif match[1] in ("SUSTAINED", "DO"):
            return "" if begin is None else text[begin : match.start()].strip()
    return ""


class ConditionSerializer(Serializer):
    """A comparison of a metric with a threshold that must be true for the condition to hold.

    NOT is folded into the operator.  AND and OR are in `condition`.
    """

    metric = s.CharField()
    level = s.CharField(help_text="the level of its values: tenant, container, volume, cluster, node, …")
    path = s.CharField(
        allow_blank=True, help_text="the measured object; empty for the cluster, and for each member of a group or ALL"
    )
    operator = s.ChoiceField(tuple(OPERATORS))
    value = s.FloatField(help_text="in the base unit")
    unit = s.CharField(allow_blank=True, help_text="as `bytes_per_second`; empty if the metric is not known any more")

    @classmethod
    def render_conditions(cls, plan: Plan, catalogue: Catalogue) -> list[dict[str, Any]]:
        """The clauses of the condition of ``plan`` that compare metrics."""
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
    """The content of a sentence."""

    policy = s.CharField(source="text", help_text="canonical text")
    source = s.CharField(help_text="the text as the client sent it")
    dynamic = s.BooleanField(source="plan.dynamic", help_text="whether an actor watches metrics for it")
    target = TargetSerializer(source="plan.target")
    condition = computed(lambda compiled: condition_text(compiled.text), s.CharField(allow_blank=True))
    conditions = ConditionSerializer(many=True, help_text="comparisons of metrics, from left to right")
    sustained = s.FloatField(source="plan.sustained", help_text="seconds for which the condition must hold")
    actions = ActionSerializer(source="plan.actions", many=True)


class CompletedActivationSerializer(Serializer):
    """The calls when an action is set and taken back; for a group or ALL `{target}` is each member."""

    keyword = s.CharField()
    url = s.CharField(allow_blank=True)
    undo = s.CharField(allow_blank=True)
    params = s.DictField()
    place = s.ChoiceField(ALL_PLACES)


class ExplanationSerializer(Serializer):
    """An explanation of one part of a sentence, in words."""

    about = s.CharField(help_text="`target`, `kind`, `fires`, `action 1` and so on, `order`")
    text = s.CharField()


class OverriddenActionSerializer(Serializer):
    """An action that a sentence overrides while it is in force, or an action of it that another policy overrides."""

    policy = s.CharField(help_text="the other policy")
    kind = s.ChoiceField(KINDS)
    keyword = s.CharField()
    reason = s.ChoiceField(REASONS)


class CheckedPolicySerializer(SentenceSerializer):
    """A checked sentence, which is not stored."""

    plan = computed(lambda compiled: compiled.plan.to_data(), s.DictField(help_text="the compiled plan"))
    warnings = ProblemSerializer(many=True)
    activations = CompletedActivationSerializer(many=True, help_text="the activation URL of each action")
    explanation = ExplanationSerializer(many=True)
    overrides = OverriddenActionSerializer(many=True, help_text="actions of other policies that it overrides")
    overridden_by = OverriddenActionSerializer(
        many=True, help_text="its own actions that other policies override, by a narrower scope or as newer ones"
    )
    more_overridden = s.BooleanField(help_text="whether there may be further ones, which are not listed")
    refusal = s.CharField(allow_blank=True, help_text="why the caller may not save it; empty if it may")

    @classmethod
    def render_checked(cls, checked: CheckedSentence, catalogue: Catalogue, **given: Any) -> dict[str, Any]:
        """A sentence with its meaning; ``activations`` and ``refusal`` are given."""
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
    """An unfinished text."""

    policy = s.CharField(allow_blank=True)
    position = s.IntegerField(min_value=0, help_text="number of characters before the position")


#: A test sends these bodies unchanged.
COMPLETIONS: Final = examples(("a target", {"policy": "FOR TEN", "position": 7}))


class CandidateSerializer(Serializer):
    """A text that may be written at the position."""

    text = s.CharField(help_text="the text to insert")
    kind = s.ChoiceField(KINDS_OF_WORDS)
    label = s.CharField(help_text="the text to show")
    help = s.CharField(allow_blank=True)


class CompletionSerializer(Serializer):
    """The texts that may replace the characters from `start` to before `end`."""

    start = s.IntegerField()
    end = s.IntegerField()
    candidates = CandidateSerializer(many=True)
    more = s.BooleanField(help_text="whether there are further ones, which more letters distinguish")
