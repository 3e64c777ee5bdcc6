"""The shapes of policies that are shown by themselves, for the schema only."""

from __future__ import annotations

from rest_framework import serializers as s

from sluice_controller.api.serializers.bandwidth import InfeasibleSerializer
from sluice_controller.api.serializers.policies import CheckedSerializer, PolicySerializer, ProblemSerializer
from sluice_core.describe import PLACES


class CompletedActivationSerializer(s.Serializer):
    """What is called when an action is set and taken back; of a group or ALL `{target}` is each member."""

    keyword = s.CharField()
    url = s.CharField(allow_blank=True)
    undo = s.CharField(allow_blank=True)
    params = s.DictField()
    place = s.ChoiceField(PLACES)


class ShownPolicySerializer(PolicySerializer):
    """A policy with the activation URL of each action, and whether what it promises can be kept."""

    activations = CompletedActivationSerializer(many=True)
    infeasible = InfeasibleSerializer(
        allow_null=True, help_text="of `bandwidth`: what the cluster cannot carry; else null"
    )
    warnings = ProblemSerializer(many=True, help_text="of `bandwidth`: what keeps it from doing what it says")


class CheckedPolicySerializer(CheckedSerializer):
    """A sentence with the activation URL of each action."""

    activations = CompletedActivationSerializer(many=True)


class CheckResultSerializer(s.Serializer):
    """One entry per sentence."""

    policies = CheckedPolicySerializer(many=True)
