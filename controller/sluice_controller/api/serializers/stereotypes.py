"""The shapes of stereotypes and of the targets that they are applied to."""

from __future__ import annotations

from typing import Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import EntrySerializer, Serializer, computed, examples, page_of


class NewStereotypeSerializer(Serializer):
    """A stereotype to be; what a change does not name stays."""

    name = s.CharField(required=False)
    text = s.CharField(required=False, help_text="sentences `FOR {target} …`")
    help = s.CharField(required=False, allow_blank=True)


class AppliedSerializer(Serializer):
    """Where a stereotype is applied."""

    level = computed(lambda policies: policies[0].plan.target.level, s.CharField(help_text="tenant or container"))
    target = computed(lambda policies: policies[0].plan.target.name, s.CharField())
    label = computed(lambda policies: policies[0].plan.target.label, s.CharField(allow_blank=True))
    policies = computed(
        lambda policies: [one.policy.id for one in policies], s.ListField(child=s.CharField(), help_text="ids")
    )


class StereotypeSerializer(EntrySerializer):
    """A named set of sentences with a hole for the target."""

    name = s.CharField(source="record.name")
    text = s.CharField(source="record.text")
    help = s.CharField(source="record.help", allow_blank=True)


class ShownStereotypeSerializer(StereotypeSerializer):
    """With the number of targets that it is applied to."""

    applied = s.IntegerField(help_text="to so many targets")


AppliedPageSerializer = page_of("targets", AppliedSerializer, "Targets in order.")


class ApplicationSerializer(AppliedSerializer):
    """What applying it has left behind."""

    changed = s.BooleanField(help_text="false when all of it stood already")


#: Accepted as it stands; a test sends it.
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
