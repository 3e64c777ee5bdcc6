"""The shapes of ``/registry`` and ``/stereotypes``, for the schema only."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers as s

from sluice_controller.api.serializers.policies import FilterSerializer
from sluice_controller.api.serializers.uploads import CodeSerializer
from sluice_controller.registry.aliases import OF
from sluice_controller.registry.metrics import GRANULARITIES, UNITS


def example(name: str, value: Any) -> list[OpenApiExample]:
    """A request body that is accepted as it stands; a test sends it."""
    return [OpenApiExample(name, value=value, request_only=True)]


class PageSerializer(s.Serializer):
    """Where a page ends."""

    next_marker = s.CharField(allow_null=True, help_text="`marker` of the next page; null on the last one")


class EntrySerializer(s.Serializer):
    """What all entries say of themselves."""

    created_at = s.DateTimeField(allow_null=True, help_text="null for what came with the software")
    created_by = s.CharField(allow_blank=True)


class MemberSerializer(s.Serializer):
    """A member; `label` are the words that it was added by where they differ."""

    path = s.CharField()
    label = s.CharField(allow_blank=True)


class MemberPageSerializer(PageSerializer):
    """Members by path."""

    members = MemberSerializer(many=True)


class TenantGroupSerializer(EntrySerializer):
    """Tenants under one name."""

    id = s.CharField()
    name = s.CharField()
    tenants = s.ListField(child=s.CharField(), help_text="accounts")
    labels = s.DictField(child=s.CharField(), help_text="by account, where it was named otherwise")


class ContainerGroupSerializer(EntrySerializer):
    """Containers under one name."""

    id = s.CharField()
    name = s.CharField()
    containers = s.ListField(child=s.CharField(), help_text="`account/container`")
    labels = s.DictField(child=s.CharField(), help_text="by path, where it was named otherwise")


class TenantGroupPageSerializer(PageSerializer):
    """Groups by name."""

    gtenants = TenantGroupSerializer(many=True)


class ContainerGroupPageSerializer(PageSerializer):
    """Groups by name."""

    gcontainers = ContainerGroupSerializer(many=True)


class NewTenantGroupSerializer(s.Serializer):
    """A group to be."""

    name = s.CharField()
    tenants = s.ListField(child=s.CharField(), required=False)


class NewContainerGroupSerializer(s.Serializer):
    """A group to be."""

    name = s.CharField()
    containers = s.ListField(child=s.CharField(), required=False)


class TenantsSerializer(s.Serializer):
    """One of both: a member to add, or all that shall be members."""

    tenant = s.CharField(required=False)
    tenants = s.ListField(child=s.CharField(), required=False)


class ContainersSerializer(s.Serializer):
    """One of both: a member to add, or all that shall be members."""

    container = s.CharField(required=False)
    containers = s.ListField(child=s.CharField(), required=False)


class CoinedTermSerializer(EntrySerializer):
    """A coined word for types, such as DOCS."""

    term = s.CharField()
    patterns = s.ListField(child=s.CharField())
    builtin = s.BooleanField(help_text="came with the software and cannot be changed")


class CoinedTermPageSerializer(PageSerializer):
    """Terms by name."""

    terms = CoinedTermSerializer(many=True)


class NewTermSerializer(s.Serializer):
    """A term to be."""

    term = s.CharField(required=False, help_text="kept in upper case; fixed once coined")
    patterns = s.ListField(child=s.CharField(), help_text="extensions and media types: pdf, text/plain, image/*")


class NewAliasSerializer(s.Serializer):
    """An alias to be."""

    name = s.CharField(required=False)
    of = s.ChoiceField(OF, required=False)
    text = s.CharField(help_text="a keyword, a metric, or `account[/container[/object]]`")
    level = s.CharField(required=False, allow_blank=True, help_text="of a metric: the level of targets it is asked for")
    params = s.DictField(required=False, help_text="of a filter: what it is set with")


class AliasSerializer(EntrySerializer):
    """Another word for a filter, a metric or a target."""

    name = s.CharField()
    of = s.ChoiceField(OF)
    text = s.CharField()
    level = s.CharField(allow_blank=True)
    params = s.DictField()


class AliasPageSerializer(PageSerializer):
    """Aliases by name."""

    aliases = AliasSerializer(many=True)


class MeasuredSerializer(CodeSerializer):
    """A workload metric; without `uploaded` there is no code of it here."""

    name = s.CharField()
    unit = s.CharField()
    type = s.CharField(help_text="gauge, counter or rate")
    help = s.CharField(allow_blank=True)
    granularities = s.ListField(child=s.CharField())
    period = s.FloatField(help_text="seconds of a window")
    aliases = s.ListField(child=s.CharField())
    location = s.CharField(help_text="exchange and routing key of its batches")
    registered = s.BooleanField(help_text="described here by somebody, so it can be described anew")
    uploaded = s.BooleanField(help_text="native code that was uploaded, so it can be stopped and rolled back")
    running = s.BooleanField(help_text="false: it was uploaded and is not measured")
    main = s.CharField(allow_blank=True, help_text="the class that counts")


class MeasuredPageSerializer(PageSerializer):
    """Metrics by name."""

    metrics = MeasuredSerializer(many=True)


class NewMetricSerializer(s.Serializer):
    """A metric to be; what a change does not name stays."""

    name = s.CharField(required=False, help_text="upper case letters, digits and `_`")
    unit = s.ChoiceField(UNITS, required=False)
    type = s.CharField(required=False, help_text="gauge, counter or rate")
    granularities = s.ListField(child=s.ChoiceField(GRANULARITIES), required=False)
    period = s.FloatField(required=False)
    help = s.CharField(required=False, allow_blank=True)
    location = s.CharField(required=False, allow_blank=True)


class ActivationSerializer(s.Serializer):
    """What is called when a policy sets a filter, and takes it back; `{target}` and `{filter}` are filled in."""

    url = s.CharField()
    undo = s.CharField(allow_blank=True)
    timeout = s.FloatField()
    federated = s.BooleanField(help_text="an HTTP service's; else our own deploy call, which nobody needs to make")


class RegisteredFilterSerializer(FilterSerializer):
    """A keyword and its activation URL."""

    activation = ActivationSerializer()


class RegisteredFilterPageSerializer(PageSerializer):
    """Keywords in order."""

    filters = RegisteredFilterSerializer(many=True)


class NewActivationSerializer(s.Serializer):
    """The service that activates a filter."""

    keyword = s.CharField(required=False)
    url = s.CharField(help_text="gets PUT with `params` and `place` as JSON")
    undo = s.CharField(required=False, allow_blank=True)
    timeout = s.FloatField(required=False, help_text="seconds of an attempt")


class NewStereotypeSerializer(s.Serializer):
    """A stereotype to be; what a change does not name stays."""

    name = s.CharField(required=False)
    text = s.CharField(required=False, help_text="sentences `FOR {target} …`")
    help = s.CharField(required=False, allow_blank=True)


class AppliedSerializer(s.Serializer):
    """Where a stereotype is applied."""

    level = s.CharField(help_text="tenant or container")
    target = s.CharField()
    label = s.CharField(allow_blank=True)
    policies = s.ListField(child=s.CharField(), help_text="ids")


class StereotypeSerializer(EntrySerializer):
    """A named set of sentences with a hole for the target."""

    name = s.CharField()
    text = s.CharField()
    help = s.CharField(allow_blank=True)


class ShownStereotypeSerializer(StereotypeSerializer):
    """With the number of targets that it is applied to."""

    applied = s.IntegerField(help_text="to so many targets")


class StereotypePageSerializer(PageSerializer):
    """Stereotypes by name."""

    stereotypes = StereotypeSerializer(many=True)


class AppliedPageSerializer(PageSerializer):
    """Targets in order."""

    targets = AppliedSerializer(many=True)


class ApplicationSerializer(AppliedSerializer):
    """What applying it has left behind."""

    changed = s.BooleanField(help_text="false when all of it stood already")


#: Accepted as they stand, in this order; a test sends them.
GTENANT: Final = example("two tenants", {"name": "gold", "tenants": ["AUTH_test", "AUTH_a"]})
GCONTAINER: Final = example("a container", {"name": "archives", "containers": ["AUTH_test/logs"]})
TERM: Final = example("spreadsheets", {"term": "SHEETS", "patterns": ["ods", "xlsx", "text/csv"]})
ALIAS: Final = [
    *example("of a filter", {"name": "tight", "of": "filter", "text": "compression", "params": {"engine": "zstd"}}),
    *example("of a metric", {"name": "GET_SEC_TENANT", "of": "metric", "text": "GETS_SEC", "level": "tenant"}),
    *example("of a target", {"name": "C1", "of": "target", "text": "AUTH_test/logs"}),
]
METRIC: Final = example("of a collector", {"name": "CPU_BUSY", "unit": "fraction", "granularities": ["node"]})
ACTIVATION: Final = example(
    "of another site",
    {"keyword": "compression", "url": "https://filters.example.org/filters/{target}/deploy/{filter}", "timeout": 3},
)
STEREOTYPE: Final = example(
    "for archives",
    {
        "name": "archive",
        "text": "FOR {target} WHEN OBJECT_TYPE = DOCS DO SET compression",
        "help": "documents are kept",
    },
)
