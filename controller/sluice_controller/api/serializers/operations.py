"""The shapes of what an operator asks for: firings, what is in force, changes, configurations, places."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers as s

from sluice_controller.api.serializers.policies import FiringSerializer, HeadSerializer, TargetSerializer
from sluice_controller.configuration.configuration import HOWS, WHATS
from sluice_controller.policies.effective import REASONS
from sluice_core.describe import KINDS, PLACES


class FiringPageSerializer(s.Serializer):
    """A page of firings, newest first."""

    firings = FiringSerializer(many=True)
    next_marker = s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one")


class PlaceSerializer(s.Serializer):
    """What a request is about."""

    account = s.CharField()
    container = s.CharField(allow_blank=True)
    object = s.CharField(allow_blank=True)


class FactsSerializer(s.Serializer):
    """What is known of the request; null is unknown."""

    method = s.CharField()
    size = s.IntegerField(allow_null=True)
    type = s.CharField(allow_null=True)
    tags = s.ListField(child=s.CharField(), allow_null=True)


class StepSerializer(s.Serializer):
    """An action that holds."""

    policy = s.CharField(help_text="`controller:<name>` when a controller has set it")
    controller = s.CharField(allow_blank=True, help_text="the controller that has set it, else empty")
    assignment = s.CharField()
    verb = s.ChoiceField(("set", "delete"))
    keyword = s.CharField()
    params = s.DictField()
    place = s.ChoiceField(PLACES)
    stage = s.IntegerField()
    protective = s.BooleanField(help_text="inherited through narrower scopes")
    target = TargetSerializer()
    member = s.CharField(allow_blank=True)


class OverriddenSerializer(s.Serializer):
    """An action that does not hold."""

    policy = s.CharField(help_text="`controller:<name>` when a controller has set it")
    controller = s.CharField(allow_blank=True, help_text="the controller that has set it, else empty")
    assignment = s.CharField(allow_blank=True, help_text="empty when its policy has set nothing here")
    keyword = s.CharField()
    reason = s.ChoiceField(REASONS)
    by = s.ListField(child=s.CharField(), help_text="the policies that override it")
    message = s.CharField()
    observed = s.DictField(
        child=s.FloatField(allow_null=True), help_text="the metric values that its actor saw; null was silent"
    )


class VerdictSerializer(s.Serializer):
    """What holds of one kind."""

    kind = s.ChoiceField(KINDS)
    decided_by = s.ListField(child=s.CharField(), help_text="policies")
    pipeline = StepSerializer(many=True, help_text="in running order on PUT")
    deletes = StepSerializer(many=True, help_text="DELETE actions that hold")
    overridden = OverriddenSerializer(many=True)
    more = s.IntegerField(help_text="how many more are overridden and not shown")


class EffectiveSerializer(s.Serializer):
    """What holds for a request, and why everything else does not."""

    target = PlaceSerializer()
    request = FactsSerializer()
    epoch = s.IntegerField(help_text="the newest change that is in it")
    kinds = VerdictSerializer(many=True)


class ChangeSerializer(s.Serializer):
    """One atomic change."""

    epoch = s.IntegerField()
    at = s.DateTimeField()
    by = s.CharField(allow_blank=True, help_text="who asked for it; `actors@…` is an actor host")
    policies = s.ListField(
        child=s.CharField(), help_text="the policies that it is about; `controller:<name>` is what a controller sets"
    )
    filters = s.ListField(child=s.CharField(), help_text="registered filters, by keyword")
    metrics = s.ListField(child=s.CharField(), help_text="uploaded metrics")
    controllers = s.ListField(child=s.CharField())
    entries = s.ListField(child=s.CharField(), help_text="entries of the registry, as kind/name")
    set = s.IntegerField(help_text="assignments that were put into force")
    taken_back = s.IntegerField(help_text="assignments that were taken back")


class OldestSerializer(s.Serializer):
    """The oldest change that is kept."""

    epoch = s.IntegerField()
    at = s.DateTimeField()


class ChangePageSerializer(s.Serializer):
    """A page of changes, newest first."""

    changes = ChangeSerializer(many=True)
    next_marker = s.CharField(
        allow_null=True, help_text="`marker` of the next page, which may be empty; null at the end"
    )
    head = HeadSerializer()
    trimmed = s.BooleanField(help_text="whether changes before `oldest` were forgotten")
    oldest = OldestSerializer(allow_null=True)


class DifferenceSerializer(s.Serializer):
    """One policy, entry, or piece of uploaded code that is another than before."""

    what = s.ChoiceField(WHATS)
    name = s.CharField()
    how = s.ChoiceField(HOWS)
    before = s.DictField(allow_null=True)
    after = s.DictField(allow_null=True)


class ChangeDetailSerializer(ChangeSerializer):
    """One atomic change, with what it replaced."""

    history = s.CharField()
    assignments = StepSerializer(many=True, help_text="what was put into force")
    dropped = s.ListField(child=s.CharField(), help_text="ids of the assignments that were taken back")
    differences = DifferenceSerializer(
        many=True, allow_null=True, help_text="null when what it replaced is not known any more"
    )


class OutcomeSerializer(s.Serializer):
    """What was changed, or with `plan` would be."""

    plan = s.BooleanField(help_text="true: nothing was changed")
    epoch = s.IntegerField(help_text="where the configuration stands")
    version = s.IntegerField(help_text="what `ETag` says")
    create = s.IntegerField()
    replace = s.IntegerField()
    delete = s.IntegerField()
    changes = DifferenceSerializer(many=True, help_text="the first 1000")


class LocationSerializer(s.Serializer):
    """One place of an object."""

    number = s.IntegerField(help_text="its place in the order of the ring, from 0")
    fragment = s.IntegerField(allow_null=True, help_text="of an erasure-coded object, where `swift_dir` tells that")
    address = s.CharField()
    port = s.IntegerField()
    device = s.CharField()
    url = s.CharField(help_text="as the object server on that node knows it")
    region = s.IntegerField(allow_null=True, help_text="null where `swift_dir` does not tell it, as all that follows")
    zone = s.IntegerField(allow_null=True)
    replication_address = s.CharField(allow_null=True)
    replication_port = s.IntegerField(allow_null=True)


class LocalitySerializer(s.Serializer):
    """Where the rings put an object's replicas or fragments; whether it exists is not asked."""

    account = s.CharField()
    container = s.CharField()
    object = s.CharField()
    storage_policy_index = s.IntegerField()
    storage_policy = s.CharField(allow_null=True, help_text="its name, where `swift_dir` tells it")
    type = s.ChoiceField(choices=("replication", "erasure_coding"), allow_null=True)
    needed = s.IntegerField(allow_null=True, help_text="how many different locations it takes to read the object")
    partition = s.IntegerField()
    locations = LocationSerializer(many=True)


class StoragePolicySerializer(s.Serializer):
    """A storage policy of Swift's by its name."""

    storage_policy = s.CharField()


class ContainerSerializer(StoragePolicySerializer):
    """A container that is there now."""

    account = s.CharField()
    container = s.CharField()
    created = s.BooleanField(help_text="false: it was there already, on the same storage policy")


class PlacementSerializer(StoragePolicySerializer):
    """Where a tenant's new containers go."""

    account = s.CharField()
    created_at = s.DateTimeField()
    created_by = s.CharField(allow_blank=True)


class PlacementPageSerializer(s.Serializer):
    """A page of placements, by account."""

    placements = PlacementSerializer(many=True)
    next_marker = s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one")


#: Accepted where Swift has such a policy; a test sends it.
PLACEMENTS = [OpenApiExample("on erasure-coded disks", value={"storage_policy": "ec42"}, request_only=True)]
