"""The shapes of filters, and below ``/filters/{target}`` and ``/filters/dependencies``."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers as s

from sluice_controller.api.serializers.base import (
    PARAMS_TEXT,
    EntrySerializer,
    PageSerializer,
    Serializer,
    examples,
    page_of,
    params_text,
)
from sluice_controller.api.serializers.code import RolloutSerializer
from sluice_controller.policies.deployments import Deployment
from sluice_controller.registry.dependencies import UsedDependency
from sluice_core.describe import ALL_PLACES, ENVIRONMENTS, KINDS, PARAMETER_TYPES, PLACES, RESOURCE_TYPES
from sluice_dsl.catalogue.base import Catalogue


class RangeSerializer(Serializer):
    """The range of a parameter while another one has a value."""

    value = s.JSONField(help_text="the value of the other parameter")
    minimum = s.FloatField()
    maximum = s.FloatField()


class ParameterSerializer(Serializer):
    """A parameter of an action."""

    name = s.CharField()
    type = s.ChoiceField(PARAMETER_TYPES)
    help = s.CharField()
    default = s.JSONField(help_text="a value of its type, or null")
    choices = s.ListField(child=s.JSONField())
    minimum = s.FloatField(allow_null=True)
    maximum = s.FloatField(allow_null=True)
    required = s.BooleanField()
    range_by = s.CharField(help_text="the parameter whose value decides the range; empty: none")
    ranges = RangeSerializer(many=True)


class FilterSerializer(Serializer):
    """A keyword of `DO SET` and its declared properties."""

    keyword = s.CharField()
    kind = s.ChoiceField(KINDS)
    help = s.CharField()
    parameters = ParameterSerializer(many=True)
    places = s.ListField(child=s.ChoiceField(ALL_PLACES))
    default_place = s.ChoiceField(ALL_PLACES)
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
    on_request = s.BooleanField(help_text="whether it runs for whole requests")
    methods = s.ListField(child=s.CharField(), help_text="methods of the requests that it runs for; empty: all")
    on_answer = s.BooleanField(help_text="whether on GET it may begin with the answer, which has size, type and tags")
    environment = s.ChoiceField(ENVIRONMENTS, help_text="where its code runs")
    about = s.ListField(child=s.ChoiceField(RESOURCE_TYPES))


class UsableFilterSerializer(FilterSerializer):
    """A filter that policies can set; a registered one with the roll-out of its code."""

    installed = s.BooleanField(help_text="whether it is installed with the software of the nodes")
    self_service = s.BooleanField(help_text="whether members may use it for their own containers")
    revision = s.IntegerField(help_text="the revision of its code; for an installed filter its version")
    rollout = RolloutSerializer(allow_null=True, help_text="null for an installed filter")


UsableFilterPageSerializer = page_of("filters", UsableFilterSerializer, "Filters by keyword.")


class DeploymentSerializer(Serializer):
    """The parameters of a deployment.

    Any other field is a parameter of the filter, as in `params`. A parameter with the name of a field
    of this object must be in `params`.
    """

    params = s.DictField(required=False, help_text="by name; values in the form of a sentence")
    place = s.ChoiceField(PLACES, required=False, help_text="by default the filter's own place")


class DeploymentSchema(OpenApiSerializerExtension):
    """Declares that a deployment has further fields."""

    target_class = DeploymentSerializer

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Called by drf-spectacular."""
        schema: dict[str, Any] = super().map_serializer(auto_schema, direction)
        return {**schema, "additionalProperties": {"type": ["string", "number", "boolean"]}}


class DeployedSerializer(Serializer):
    """A filter that is set for a target by a policy without metrics."""

    keyword = s.CharField(source="action.keyword")
    params = s.DictField(source="action.params", help_text="values in base units")
    params_text = s.CharField(allow_blank=True, help_text=PARAMS_TEXT)
    place = s.ChoiceField(ALL_PLACES, source="action.place")
    policy = s.CharField(source="policy.policy.id", help_text="id of the policy that sets it")
    text = s.CharField(source="policy.policy.text", help_text="that policy's sentence")
    origin = s.CharField(
        source="policy.policy.origin", allow_blank=True, help_text="`deploy/<keyword>` when it was deployed here"
    )
    enabled = s.BooleanField(source="policy.policy.enabled")

    @classmethod
    def render_deployment(cls, deployment: Deployment, catalogue: Catalogue) -> dict[str, Any]:
        """A filter, described by ``catalogue``."""
        return cls.render(deployment, params_text=params_text(deployment.action, catalogue))


class DeployedPageSerializer(PageSerializer):
    """Filters by keyword."""

    target = s.CharField()
    level = s.CharField(help_text="tenant, container or object")
    filters = DeployedSerializer(many=True)


class DeploymentResultSerializer(DeployedSerializer):
    """A filter as it is deployed now."""

    changed = s.BooleanField(help_text="false if the same deployment was already there")


class NewDependencySerializer(Serializer):
    """A new file; fields that a change does not give stay."""

    name = s.CharField(required=False, help_text="the name of the file beside the code of the filter")
    help = s.CharField(required=False, allow_blank=True)


class DependencySerializer(EntrySerializer):
    """A file; without ``sha256`` it has no data yet."""

    id = s.CharField(source="record.name")
    name = s.CharField(source="record.name")
    help = s.CharField(source="record.help", allow_blank=True)
    sha256 = s.CharField(source="record.sha256", allow_blank=True)
    size = s.IntegerField(source="record.size")
    revision = s.IntegerField(source="record.revision")
    filters = s.ListField(child=s.CharField(), help_text="the filters that use it")

    @classmethod
    def render(cls, thing: UsedDependency, **given: Any) -> dict[str, Any]:
        """A dependency with the filters that use it."""
        return super().render(thing.found, filters=list(thing.filters), **given)


class AttachmentSerializer(Serializer):
    """The filters of an attachment; by default those that are deployed at the target."""

    filters = s.ListField(child=s.CharField(), required=False)


class DeployedDependencySerializer(Serializer):
    """A dependency that filters at a target use."""

    name = s.CharField()
    filters = s.ListField(child=s.CharField())


class DeployedDependencyPageSerializer(PageSerializer):
    """Dependencies by name."""

    target = s.CharField()
    dependencies = DeployedDependencySerializer(many=True)


#: A test sends these bodies unchanged.
DEPLOYMENT: Final = examples(
    ("with an engine", {"params": {"engine": "gzip"}}), ("as IOStack writes it", {"engine": "gzip"})
)
DEPENDENCY: Final = examples(("a jar", {"name": "commons-io.jar", "help": "a library of the parser"}))
