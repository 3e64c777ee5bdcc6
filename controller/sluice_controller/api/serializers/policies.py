"""The shapes of bodies, for the schema only: nothing is parsed or rendered through these."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers as s

from sluice_controller.catalog.selectors import STATES
from sluice_core.describe import ENVIRONMENTS, KINDS, PARAMETER_TYPES, PLACES

NODE_STATES = ("ok", "stale_history", "failed", "away")
HEALTH = ("ok", "degraded")


class ProblemSerializer(s.Serializer):
    """One error or warning in a policy's text; line and columns count from 1."""

    message = s.CharField()
    line = s.IntegerField(min_value=1)
    column = s.IntegerField(min_value=1)
    end_column = s.IntegerField(min_value=1, help_text="one behind the last character that is meant")
    caret = s.CharField(help_text="the line of the text and, below it, carets under what is meant")
    near_miss = s.CharField(allow_blank=True, help_text="what was probably meant; empty when nothing is near")
    severity = s.ChoiceField(("error", "warning"))
    code = s.CharField(help_text="kind of the problem, for programs")


class ErrorDetailSerializer(s.Serializer):
    """What went wrong."""

    code = s.IntegerField(help_text="the HTTP status")
    title = s.CharField(help_text="the status in words")
    message = s.CharField()
    problems = ProblemSerializer(many=True, help_text="empty unless the text of a policy is at fault")


class ErrorSerializer(s.Serializer):
    """The body of every answer from 400 on."""

    error = ErrorDetailSerializer()


class PolicyTextSerializer(s.Serializer):
    """One or several sentences; several are accepted all together, or not at all."""

    policy = s.CharField()


class RevisionSerializer(s.Serializer):
    """What is to be another in a policy; what is not named stays."""

    policy = s.CharField(required=False, help_text="one sentence")
    enabled = s.BooleanField(required=False)


#: Accepted as they stand; a test sends them.
REVISIONS = [
    OpenApiExample("switch it off", value={"enabled": False}, request_only=True),
    OpenApiExample(
        "another text", value={"policy": "FOR TENANT AUTH_test DO SET compression WITH engine=lz4"}, request_only=True
    ),
]


class TargetSerializer(s.Serializer):
    """What a policy is about; `label` are the words of the sentence where they differ from `name`."""

    level = s.ChoiceField(("object", "container", "tenant", "cluster", "volume"))
    select = s.ChoiceField(("name", "group", "all"))
    name = s.CharField(allow_blank=True)
    label = s.CharField(allow_blank=True)


class ActionSerializer(s.Serializer):
    """One thing that a policy does."""

    kind = s.ChoiceField(KINDS)
    verb = s.ChoiceField(("set", "delete"))
    keyword = s.CharField()
    params = s.DictField(help_text="values in base units, by parameter name")
    place = s.ChoiceField(PLACES)
    stage = s.IntegerField()
    protective = s.BooleanField()
    life = s.ChoiceField(("persistent", "transient"))


class SentenceSerializer(s.Serializer):
    """What a sentence says."""

    policy = s.CharField(help_text="canonical text")
    source = s.CharField(help_text="the text as it was written")
    dynamic = s.BooleanField(help_text="whether an actor watches metrics for it")
    target = TargetSerializer()
    condition = s.CharField(allow_blank=True)
    sustained = s.FloatField(help_text="seconds for which the condition must hold")
    actions = ActionSerializer(many=True)


class CheckedSerializer(SentenceSerializer):
    """A sentence that was checked and not kept."""

    plan = s.DictField(help_text="the compiled plan")
    warnings = ProblemSerializer(many=True)


class RefusalSerializer(s.Serializer):
    """A node that does not enforce a policy, and why."""

    node = s.CharField()
    reason = s.CharField()


class EnforcedSerializer(s.Serializer):
    """How many of all nodes enforce a policy; each of the others is in one of the lists."""

    nodes = s.IntegerField()
    total = s.IntegerField()
    refused = RefusalSerializer(many=True)
    waiting = s.ListField(child=s.CharField(), help_text="have not acknowledged it yet")
    away = s.ListField(child=s.CharField(), help_text="have not reported for a while")


class FiringSerializer(s.Serializer):
    """Something that a policy's actor did."""

    at = s.DateTimeField()
    what = s.CharField(help_text="set, changed or taken_back")
    member = s.CharField(allow_blank=True)
    window = s.IntegerField()


class ObservedSerializer(s.Serializer):
    """What a policy's actor saw in its last window; a metric without a value was silent."""

    window = s.IntegerField(help_text="unix time at which the window began")
    values = s.DictField(child=s.FloatField(allow_null=True), help_text="by metric; empty for a group or ALL")
    members = s.DictField(
        child=s.DictField(child=s.FloatField(allow_null=True)),
        help_text="of a group or ALL: by member and metric",
    )


class PolicySerializer(SentenceSerializer):
    """A policy and how it fares."""

    id = s.CharField()
    version = s.IntegerField(help_text="what `ETag` says")
    state = s.ChoiceField(STATES)
    enabled = s.BooleanField()
    reason = s.CharField(allow_blank=True, help_text="why it failed")
    created_at = s.DateTimeField()
    created_by = s.CharField(allow_blank=True)
    origin = s.CharField(
        allow_blank=True,
        help_text=(
            "what wrote its sentence: `stereotype/<name>`, `deploy/<keyword>`, `bw/<account>` or `slo/<account>`, the "
            "last two with `/<storage policy>` where it is for one; else empty"
        ),
    )
    epoch = s.IntegerField(help_text="the change since which it stands as it does")
    enforced = EnforcedSerializer()
    firings = FiringSerializer(many=True)
    observed = ObservedSerializer(
        allow_null=True, help_text="only of a dynamic policy that is asked for by its id, and a second after that"
    )


class PolicyPageSerializer(s.Serializer):
    """A page of policies, oldest first."""

    policies = PolicySerializer(many=True)
    next_marker = s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one")


class CreatedSerializer(PolicySerializer):
    """A new policy."""

    warnings = ProblemSerializer(many=True)


class CreatedListSerializer(s.Serializer):
    """Several new policies, in the order of their sentences."""

    policies = CreatedSerializer(many=True)


class NodeRefusalSerializer(s.Serializer):
    """An assignment that a node cannot enforce."""

    assignment = s.CharField()
    policy = s.CharField()
    reason = s.CharField()


class NodeSerializer(s.Serializer):
    """What a node's agent reported last."""

    node = s.CharField()
    state = s.ChoiceField(NODE_STATES)
    detail = s.CharField(allow_blank=True)
    history = s.CharField(allow_blank=True)
    epoch = s.IntegerField(help_text="the last change that it has applied")
    refused = NodeRefusalSerializer(many=True)
    workers = s.IntegerField()
    assignments = s.IntegerField()
    dropped = s.IntegerField(help_text="metric batches that were lost")
    storage = s.CharField(
        allow_blank=True,
        help_text="`ready` when objects can be transformed on its disks, else what is waited for; empty without disks",
    )
    code = s.DictField(
        child=s.IntegerField(),
        help_text="the revision that it can run of uploaded code: `<filter>`, `metric/<NAME>`",
    )
    sandbox = s.DictField(child=s.CharField(), help_text="isolated environment: `ok`, or what is wrong with it")
    software = s.CharField(allow_blank=True)
    started_at = s.DateTimeField()
    reported_at = s.DateTimeField()


class HeadSerializer(s.Serializer):
    """The newest change."""

    history = s.CharField(allow_blank=True)
    epoch = s.IntegerField()


class NodeListSerializer(s.Serializer):
    """All nodes that ever reported, but those forgotten."""

    nodes = NodeSerializer(many=True)
    next_marker = s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one")
    head = HeadSerializer()


class ParameterSerializer(s.Serializer):
    """A parameter of an action."""

    name = s.CharField()
    type = s.ChoiceField(PARAMETER_TYPES)
    help = s.CharField()
    default = s.JSONField(help_text="a value of the type, or null")
    choices = s.ListField(child=s.JSONField())
    minimum = s.FloatField(allow_null=True)
    maximum = s.FloatField(allow_null=True)
    required = s.BooleanField()


class FilterSerializer(s.Serializer):
    """A keyword of `DO SET` and what it declares of itself."""

    keyword = s.CharField()
    kind = s.ChoiceField(KINDS)
    help = s.CharField()
    parameters = ParameterSerializer(many=True)
    places = s.ListField(child=s.ChoiceField(PLACES))
    default_place = s.ChoiceField(PLACES)
    stage = s.IntegerField()
    version = s.IntegerField()
    on_put = s.BooleanField()
    on_get = s.BooleanField()
    changes_content = s.BooleanField()
    changes_length = s.BooleanField()
    reversible = s.BooleanField()
    random_access = s.BooleanField()
    needs_whole_object = s.BooleanField()
    protective = s.BooleanField()
    available = s.BooleanField(help_text="whether this cluster can enforce it")
    on_request = s.BooleanField(help_text="whether it accompanies whole requests")
    environment = s.ChoiceField(ENVIRONMENTS, help_text="who runs its code")


class HealthSerializer(s.Serializer):
    """`degraded` when one of the dependencies is; `keystone` is one where it says who asks."""

    status = s.ChoiceField(HEALTH)
    dependencies = s.DictField(child=s.ChoiceField(HEALTH))
