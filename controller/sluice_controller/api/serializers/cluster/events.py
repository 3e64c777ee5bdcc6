"""The shapes of events."""

from __future__ import annotations

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import PageSerializer, Serializer, UnixTimeField
from sluice_core.messages.events import KINDS, SEVERITIES


class EventSerializer(Serializer):
    """Something that went wrong, or is well again."""

    id = s.CharField(help_text="where it stands in the log, for `since`")
    at = UnixTimeField(help_text="when it was noticed")
    severity = s.ChoiceField(SEVERITIES)
    kind = s.CharField(help_text=f"what happened: {', '.join(KINDS)}")
    node = s.CharField(allow_blank=True)
    policy = s.CharField(allow_blank=True)
    subject = s.CharField(allow_blank=True, help_text="what else it is about: code, a plugin, an environment")
    text = s.CharField()
    source = s.CharField(help_text="who logged it: a node, an actor host, `api` or `bandwidth`")
    fields = s.DictField(help_text="further values, by name")


class EventPageSerializer(PageSerializer):
    """A page of events, oldest first."""

    events = EventSerializer(many=True)
    last = s.CharField(help_text="`since` of whoever wants what comes behind this page")
