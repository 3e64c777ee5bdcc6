"""The shape of the counts of everything that can be amiss."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import Serializer, computed
from sluice_controller.api.serializers.cluster.nodes import HEALTH, NODE_STATES
from sluice_controller.catalog.policy_cache import STATES


def _count(state: str) -> Any:
    return computed(lambda counts: counts.states.get(state, 0), s.IntegerField())


class PolicyCountsSerializer(Serializer):
    """How many policies there are, by state, and how many a node refuses, in whatever state they are."""

    total = s.IntegerField()
    active, waiting, failed, disabled = map(_count, STATES)
    refused = s.IntegerField()


class FloorCountsSerializer(Serializer):
    """Promises of bandwidth that the cluster cannot carry now."""

    short = s.IntegerField(help_text="how many policies")
    shortfall = s.FloatField(help_text="bytes per second that are missing")
    stale = s.BooleanField(help_text="whether nobody measures, so that none says nothing")


class NodeCountsSerializer(Serializer):
    """How many nodes there are, by state, and how many refuse something, in whatever state they are."""

    total = s.IntegerField()
    ok, stale_history, failed, away = map(_count, NODE_STATES)
    refusing = s.IntegerField()


class HostCountsSerializer(Serializer):
    """How many actor hosts have spoken lately, and how many have not."""

    alive = s.IntegerField()
    away = s.IntegerField()


class ClusterCountsSerializer(Serializer):
    """What is the whole cluster's, and no tenant's."""

    nodes = NodeCountsSerializer()
    hosts = HostCountsSerializer()
    dependencies = s.DictField(child=s.ChoiceField(HEALTH), help_text="as `/health` says it")


class OverviewSerializer(Serializer):
    """Counts of everything that can be amiss."""

    policies = PolicyCountsSerializer()
    floors = FloorCountsSerializer()
    cluster = ClusterCountsSerializer(allow_null=True, help_text="null for whoever sees its own policies alone")
