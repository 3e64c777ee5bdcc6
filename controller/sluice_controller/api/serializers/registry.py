"""The shapes of ``/registry``: terms, aliases, metrics, activation URLs and groups; stereotypes and their targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import EntrySerializer, Serializer, computed, examples, page_of
from sluice_controller.api.serializers.code import CodeSerializer
from sluice_controller.api.serializers.filters import FilterSerializer
from sluice_controller.registry.activations import FilterActivation
from sluice_controller.registry.aliases import OF
from sluice_controller.registry.metrics import GRANULARITIES, UNITS, RegisteredMetric
from sluice_core.describe import PARAMETER_TYPES
from sluice_core.messages.uploads import Upload


class CoinedTermSerializer(EntrySerializer):
    """A term for types, such as DOCS."""

    term = s.CharField(source="record.name")
    patterns = s.ListField(source="record.values", child=s.CharField())
    builtin = computed(
        lambda found: not found.created, s.BooleanField(help_text="part of the software; it cannot be changed")
    )


class NewTermSerializer(Serializer):
    """A new term."""

    term = s.CharField(required=False, help_text="kept in upper case; fixed once created")
    patterns = s.ListField(child=s.CharField(), help_text="extensions and media types: pdf, text/plain, image/*")


class NewAliasSerializer(Serializer):
    """A new alias."""

    name = s.CharField(required=False)
    of = s.ChoiceField(OF, required=False)
    text = s.CharField(help_text="a keyword, a metric, `account[/container[/object]]`, or a volume")
    level = s.CharField(
        required=False,
        allow_blank=True,
        help_text="for a metric: the level that it is read at; `volume` for a volume",
    )
    params = s.DictField(required=False, help_text="for a filter: the parameters that it is set with")


class AliasSerializer(EntrySerializer):
    """Another name for a filter, a metric or a target."""

    name = s.CharField(source="record.name")
    of = s.ChoiceField(OF, source="record.of")
    text = s.CharField(source="record.text")
    level = s.CharField(source="record.level", allow_blank=True)
    params = s.DictField(source="record.params")


#: For metrics that were not uploaded.
_NO_CODE: Final = Upload("", "", "", "", "", 0, revision=0)


class MeasuredSerializer(CodeSerializer):
    """A workload metric; without `uploaded` its code is not stored here."""

    name = s.CharField(source="info.name")
    unit = s.CharField(source="info.unit")
    help = s.CharField(source="info.help", allow_blank=True)
    granularities = s.ListField(source="info.granularities", child=s.CharField())
    period = s.FloatField(source="info.period", help_text="seconds of a window")
    aliases = s.ListField(source="info.aliases", child=s.CharField())
    type = s.CharField(help_text="gauge, counter or rate")
    location = s.CharField(help_text="exchange and routing key of its batches")
    registered = s.BooleanField(help_text="whether it was registered by this API, so its description can be changed")
    uploaded = computed(
        lambda metric: metric.upload is not None,
        s.BooleanField(help_text="whether its code was uploaded, so it can be stopped and rolled back"),
    )
    running = computed(
        lambda metric: metric.upload is None or metric.upload.running,
        s.BooleanField(help_text="false: it was uploaded and is stopped"),
    )
    main = computed(
        lambda metric: metric.upload.main if metric.upload else "",
        s.CharField(allow_blank=True, help_text="the class that counts"),
    )

    @classmethod
    def render(cls, thing: RegisteredMetric, **given: Any) -> dict[str, Any]:
        """A metric, of a plugin, uploaded or registered."""
        return super().render(thing, **CodeSerializer.render(thing.upload or _NO_CODE), **given)


class NewMetricSerializer(Serializer):
    """A new metric; fields that a change does not give stay."""

    name = s.CharField(required=False, help_text="upper case letters, digits and `_`")
    unit = s.ChoiceField(UNITS, required=False)
    type = s.CharField(required=False, help_text="gauge, counter or rate")
    granularities = s.ListField(child=s.ChoiceField(GRANULARITIES), required=False)
    period = s.FloatField(required=False)
    help = s.CharField(required=False, allow_blank=True)
    location = s.CharField(required=False, allow_blank=True)


class ActivationSerializer(Serializer):
    """The call when a policy sets a filter, and when it takes it back; `{target}` and `{filter}` are filled in."""

    url = s.CharField()
    undo = s.CharField(allow_blank=True)
    timeout = s.FloatField()
    federated = s.BooleanField(help_text="true: an HTTP service; false: Sluice's own deploy call, which is not needed")
    service = s.BooleanField(help_text="whether the filter is the service itself, which no node runs")


class RegisteredFilterSerializer(FilterSerializer):
    """A keyword and its activation URL."""

    activation = ActivationSerializer()

    @classmethod
    def render(cls, thing: FilterActivation, **given: Any) -> dict[str, Any]:
        """A keyword with its own activation URL or that of Sluice's deploy call."""
        activation = ActivationSerializer.render(thing.activation, federated=thing.federated)
        return super().render(thing.info, activation=activation, **given)


class NewParameterSerializer(Serializer):
    """A parameter of the filter of a third party."""

    name = s.CharField()
    type = s.CharField(help_text=f"one of {', '.join(PARAMETER_TYPES)}")
    help = s.CharField(required=False)
    default = s.JSONField(required=False)
    choices = s.ListField(child=s.JSONField(), required=False)
    minimum = s.FloatField(required=False)
    maximum = s.FloatField(required=False)
    required = s.BooleanField(required=False)


class NewActivationSerializer(Serializer):
    """The service that activates a filter."""

    keyword = s.CharField(required=False)
    url = s.CharField(help_text="gets PUT with `params` and `place` as JSON")
    undo = s.CharField(required=False, allow_blank=True)
    timeout = s.FloatField(required=False, help_text="seconds of one attempt")
    help = s.CharField(required=False, help_text="for the filter of a third party, which has no other description")
    parameters = NewParameterSerializer(many=True, required=False, help_text="for the filter of a third party")


#: A test sends these bodies unchanged, in this order.
TERM: Final = examples(("spreadsheets", {"term": "SHEETS", "patterns": ["ods", "xlsx", "text/csv"]}))
ALIAS: Final = examples(
    ("of a filter", {"name": "tight", "of": "filter", "text": "compression", "params": {"engine": "zstd"}}),
    ("of a metric", {"name": "GET_SEC_TENANT", "of": "metric", "text": "GETS_SEC", "level": "tenant"}),
    ("of a target", {"name": "C1", "of": "target", "text": "AUTH_test/logs"}),
)
METRIC: Final = examples(("of a collector", {"name": "CPU_BUSY", "unit": "fraction", "granularities": ["node"]}))
ACTIVATION: Final = examples(
    (
        "of another site",
        {
            "keyword": "compression",
            "url": "https://filters.example.org/filters/{target}/deploy/{filter}",
            "timeout": 3,
        },
    ),
    (
        "of a third party",
        {
            "keyword": "scan",
            "url": "https://scan.example.org/{target}/on",
            "undo": "https://scan.example.org/{target}/off",
            "parameters": [{"name": "depth", "type": "int", "help": "levels of archives", "minimum": 1}],
        },
    ),
)


class NewStereotypeSerializer(Serializer):
    """A new stereotype; fields that a change does not give stay."""

    name = s.CharField(required=False)
    text = s.CharField(required=False, help_text="sentences `FOR {target} …`")
    help = s.CharField(required=False, allow_blank=True)


class AppliedSerializer(Serializer):
    """A target of a stereotype."""

    level = computed(lambda policies: policies[0].plan.target.level, s.CharField(help_text="tenant or container"))
    target = computed(lambda policies: policies[0].plan.target.name, s.CharField())
    label = computed(lambda policies: policies[0].plan.target.label, s.CharField(allow_blank=True))
    policies = computed(
        lambda policies: [one.policy.id for one in policies], s.ListField(child=s.CharField(), help_text="ids")
    )


class StereotypeSerializer(EntrySerializer):
    """A named set of sentences with a placeholder for the target."""

    name = s.CharField(source="record.name")
    text = s.CharField(source="record.text")
    help = s.CharField(source="record.help", allow_blank=True)


class ShownStereotypeSerializer(StereotypeSerializer):
    """A stereotype with the number of its targets."""

    applied = s.IntegerField(help_text="number of targets that it is applied to")


AppliedPageSerializer = page_of("targets", AppliedSerializer, "Targets in order.")


class ApplicationSerializer(AppliedSerializer):
    """The result of applying a stereotype."""

    changed = s.BooleanField(help_text="false if all of its policies already existed")


#: A test sends this body unchanged.
STEREOTYPE: Final = examples(
    (
        "for archives",
        {
            "name": "archive",
            "text": "FOR {target} WHEN OBJECT_TYPE = DOCS DO SET compression",
            "help": "documents are kept",
        },
    )
)


class MemberSerializer(Serializer):
    """A member; `label` is the name that it was added by, if that differs."""

    path = s.CharField()
    label = s.CharField(allow_blank=True)


MemberPageSerializer = page_of("members", MemberSerializer, "Members by path.")


@dataclass(frozen=True, slots=True)
class GroupShapes:
    """The shapes of groups of one level: of a group, of a new one with examples, and of a change of its members."""

    group: type[Serializer]
    new: type[Serializer]
    examples: Any
    changes: type[Serializer]


def _group_shapes(level: str, member: str, label: str, example: tuple[str, Any]) -> GroupShapes:
    """The shapes of groups of a level.

    :param member: what a member is
    :param label: the description of labels
    :param example: an example of a body; a test sends it unchanged
    """
    many, title = f"{level}s", level.title()
    group = {
        "__doc__": f"{title}s under one name.",
        "id": s.CharField(source="record.name"),
        "name": s.CharField(source="record.name"),
        many: s.ListField(source="record.members", child=s.CharField(), help_text=member),
        "labels": s.DictField(source="record.labels", child=s.CharField(), help_text=label),
    }
    members = {many: s.ListField(child=s.CharField(), required=False)}
    new = {"__doc__": "A new group.", "name": s.CharField(), **members}
    text = "Either a member to add, or the list of all members."
    changes = {"__doc__": text, level: s.CharField(required=False), **members}
    return GroupShapes(
        type(f"{title}GroupSerializer", (EntrySerializer,), group),
        type(f"New{title}GroupSerializer", (Serializer,), new),
        examples(example),
        type(f"{title}sSerializer", (Serializer,), changes),
    )


_BY_PATH: Final = "by path, if it was added by another name"
TENANT_GROUPS: Final = _group_shapes(
    "tenant",
    "accounts",
    "by account, if it was added by another name",
    ("two tenants", {"name": "gold", "tenants": ["AUTH_test", "AUTH_a"]}),
)
CONTAINER_GROUPS: Final = _group_shapes(
    "container",
    "`account/container`",
    _BY_PATH,
    ("a container", {"name": "archives", "containers": ["AUTH_test/logs"]}),
)
VOLUME_GROUPS: Final = _group_shapes(
    "volume", "`account/volume id`", _BY_PATH, ("no volume yet", {"name": "disks", "volumes": []})
)
