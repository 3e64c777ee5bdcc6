"""The shapes below ``/filters/{target}`` and ``/filters/dependencies``, for the schema only."""

from __future__ import annotations

from typing import Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.policies import FilterSerializer
from sluice_controller.api.serializers.registry import EntrySerializer, PageSerializer, example
from sluice_core.describe import PLACES


class FilterPageSerializer(PageSerializer):
    """Filters by keyword."""

    filters = FilterSerializer(many=True)


class DeploymentSerializer(s.Serializer):
    """How a filter is to be set."""

    params = s.DictField(required=False, help_text="by name; values as a sentence would have them")
    place = s.ChoiceField(PLACES, required=False, help_text="the filter's own choice when missing")


class DeployedSerializer(s.Serializer):
    """A filter that is set for a target by a policy without metrics."""

    keyword = s.CharField()
    params = s.DictField(help_text="values in base units")
    place = s.ChoiceField(PLACES)
    policy = s.CharField(help_text="id of the policy that sets it")
    text = s.CharField(help_text="that policy's sentence")
    origin = s.CharField(allow_blank=True, help_text="`deploy/<keyword>` when it was deployed here")
    enabled = s.BooleanField()


class DeployedPageSerializer(PageSerializer):
    """Filters by keyword."""

    target = s.CharField()
    level = s.CharField(help_text="tenant, container or object")
    filters = DeployedSerializer(many=True)


class DeploymentResultSerializer(DeployedSerializer):
    """A filter as it is deployed now."""

    changed = s.BooleanField(help_text="false when it stood like that already")


class NewDependencySerializer(s.Serializer):
    """A file to be; what a change does not name stays."""

    name = s.CharField(required=False, help_text="of the file beside the code of the filter")
    help = s.CharField(required=False, allow_blank=True)


class DependencySerializer(EntrySerializer):
    """A file; without ``sha256`` it has no data yet."""

    id = s.CharField()
    name = s.CharField()
    help = s.CharField(allow_blank=True)
    sha256 = s.CharField(allow_blank=True)
    size = s.IntegerField()
    revision = s.IntegerField()
    filters = s.ListField(child=s.CharField(), help_text="that use it")


class DependencyPageSerializer(PageSerializer):
    """Dependencies by name."""

    dependencies = DependencySerializer(many=True)


class AttachmentSerializer(s.Serializer):
    """Which filters; those that are deployed at the target when missing."""

    filters = s.ListField(child=s.CharField(), required=False)


class DeployedDependencySerializer(s.Serializer):
    """A dependency that filters at a target use."""

    name = s.CharField()
    filters = s.ListField(child=s.CharField())


class DeployedDependencyPageSerializer(PageSerializer):
    """Dependencies by name."""

    target = s.CharField()
    dependencies = DeployedDependencySerializer(many=True)


#: Accepted as they stand; a test sends them.
DEPLOYMENT: Final = example("with an engine", {"params": {"engine": "gzip"}})
DEPENDENCY: Final = example("a jar", {"name": "commons-io.jar", "help": "what the parser needs"})
