"""The shapes of ``/motifs`` and ``/spaces``."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import Serializer, UnixTimeField, computed, examples, page_of
from sluice_controller.motifs import space_name
from sluice_core.messages.elasticity import POLICIES, VERIFICATIONS
from sluice_motif_control.messages import CANCELLED, DONE, RUNNING, WAITING

OPERATION_STATES: Final = (WAITING, RUNNING, DONE, CANCELLED)
SPACE_STATES: Final = ("kept", "contracting", "filling", "above", "thrashing", "suspended")
ACTIONS: Final = ("expand", "contract")


class AttachedMotifSerializer(Serializer):
    """A motif of an object."""

    template = s.CharField()
    params = s.DictField(child=s.JSONField())
    attached_by = s.CharField(allow_blank=True, help_text="with whose rights sources are read; empty: the operator's")


class ListedObjectSerializer(Serializer):
    """An object with motifs, in a list."""

    item = s.CharField(help_text="account/container/object")
    size = s.IntegerField(help_text="plain bytes")
    contracted = s.BooleanField(help_text="whether its bytes are gone")
    opens = s.IntegerField(help_text="that were counted since the daemons know it")


class ObjectSpaceSerializer(Serializer):
    """The space of an object, in short."""

    path = s.CharField()
    target = s.IntegerField(help_text="bytes")
    used = s.IntegerField(help_text="bytes")
    state = s.ChoiceField(SPACE_STATES)
    reason = s.CharField(allow_blank=True)


class MotifObjectSerializer(ListedObjectSerializer):
    """An object with motifs."""

    motifs = AttachedMotifSerializer(many=True)
    sources = s.ListField(child=s.CharField(), help_text="objects whose versions were recorded with its bytes")
    expansion_seconds = s.FloatField(help_text="mean time of making its bytes; 0: they were not made yet")
    outcome = s.CharField(
        required=False, help_text="of a contraction: contracted, already contracted, busy or changed (meanwhile)"
    )
    contractible = s.BooleanField(required=False, help_text="with `why`: whether its bytes could go now")
    reasons = s.ListField(child=s.CharField(), required=False, help_text="with `why`: what stands in the way")
    space = ObjectSpaceSerializer(required=False, allow_null=True, help_text="with `why`; null when it is in none")


class ListedObjectPageSerializer(Serializer):
    """Objects with motifs, by name."""

    objects = ListedObjectSerializer(many=True)
    next_marker = s.CharField(allow_null=True)


class NewMotifSerializer(Serializer):
    """A motif."""

    template = s.CharField(help_text="one of `/motifs/templates`")
    params = s.DictField(child=s.JSONField(), required=False, help_text="of the template; texts may have units")


class ActionSerializer(Serializer):
    """What is to be done with an object."""

    action = s.ChoiceField(ACTIONS)
    verify = s.ChoiceField(VERIFICATIONS, required=False, help_text="of a contraction: what is proven before")


class TemplateSerializer(Serializer):
    """A template."""

    keyword = s.CharField()
    help = s.CharField(allow_blank=True)
    relation = s.CharField(help_text="derived: out of date when a source changes; preserving: needs it as it is")
    exact = s.BooleanField(help_text="whether it makes the very same bytes")
    parameters = s.ListField(child=s.DictField(child=s.JSONField()))


class TemplateListSerializer(Serializer):
    """The templates that all daemons know, by keyword, and how many daemons run."""

    templates = TemplateSerializer(many=True)
    daemons = s.IntegerField()


class NewOperationSerializer(Serializer):
    """What is to be expanded; everything, when nothing is said."""

    account = s.CharField(required=False, help_text="a project's name, or an account")
    container = s.CharField(required=False)


class FailedExpansionSerializer(Serializer):
    """An object that was not expanded."""

    item = s.CharField()
    reason = s.CharField()


class MotifOperationSerializer(Serializer):
    """An expansion of many objects."""

    id = s.CharField()
    account = computed(lambda one: one.account or None, s.CharField(allow_null=True, help_text="null: of all"))
    container = computed(lambda one: one.container or None, s.CharField(allow_null=True, help_text="null: of all"))
    state = s.ChoiceField(OPERATION_STATES)
    expanded = s.IntegerField(help_text="objects")
    failed = s.IntegerField(help_text="objects")
    remaining = s.IntegerField(help_text="objects that are known to be left")
    bytes = s.IntegerField(help_text="that were made")
    examples = computed(
        lambda one: [{"item": item, "reason": reason} for item, reason in one.examples],
        FailedExpansionSerializer(many=True, help_text="the last objects that failed"),
    )
    created_at = UnixTimeField(source="created")
    started_at = UnixTimeField(source="started", allow_null=True)
    ended_at = UnixTimeField(source="ended", allow_null=True)
    by = s.CharField(allow_blank=True)
    daemon = s.CharField(allow_blank=True, help_text="that works at it, or did last")


MotifOperationPageSerializer: Final = page_of("operations", MotifOperationSerializer, "Operations, oldest first.")


class SpacePartSerializer(Serializer):
    """A part of a space."""

    path = s.CharField()
    target = s.IntegerField(help_text="bytes")
    used = s.IntegerField(help_text="bytes")


def _parts(status: Any) -> list[dict[str, Any]]:
    return [{"path": path, "target": target, "used": used} for path, (target, used) in sorted(status.parts.items())]


class SpaceSerializer(Serializer):
    """A space: bytes are plain ones of objects with motifs."""

    name = computed(space_name, s.CharField(help_text="account/container, account, or CLUSTER"))
    level = s.CharField()
    target = s.IntegerField(help_text="bytes that it is kept at")
    used = s.IntegerField(help_text="bytes that are stored")
    contracted = s.IntegerField(help_text="bytes that were given up")
    objects = s.IntegerField(source="items", help_text="whose bytes are stored")
    contracted_objects = s.IntegerField(source="contracted_items")
    state = s.ChoiceField(SPACE_STATES)
    reason = s.CharField(allow_blank=True, help_text="why it is above its target")
    policy = s.ChoiceField(POLICIES, help_text="which objects give up their bytes first")
    min_age = s.FloatField(help_text="seconds")
    verify = s.ChoiceField(VERIFICATIONS)
    hit_rate = s.FloatField(allow_null=True, help_text="opens of the last hour whose bytes were there; null: no opens")
    hits = s.IntegerField(help_text="of the last hour")
    misses = s.IntegerField(help_text="of the last hour: expansions that somebody waited for")
    expansions = s.IntegerField(help_text="since its daemon began, without those that filled spare space")
    seconds_lost = s.FloatField(help_text="by those")
    expansions_per_second = s.FloatField(help_text="lately")
    expansion_time = s.FloatField(help_text="mean seconds of one, lately")
    parts = computed(_parts, SpacePartSerializer(many=True, help_text="empty when there is one"))
    set_by = s.CharField(source="said_by", help_text="the policy that says so")
    owner = s.CharField(help_text="the daemon that keeps it")
    at = UnixTimeField(help_text="when it was reported")


SpacePageSerializer: Final = page_of("spaces", SpaceSerializer, "Spaces, by name.")

MOTIFS: Final = examples(
    ("the same bytes as another object", {"template": "duplicate_of", "params": {"source": "AUTH_a/c/other"}})
)
MOTIF_ACTIONS: Final = examples(
    ("give up its bytes", {"action": "contract", "verify": "trust"}), ("make them again", {"action": "expand"})
)
OPERATIONS: Final = examples(("everything of an account", {"account": "AUTH_a"}))
