"""The shape of what a caller may do."""

from __future__ import annotations

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import Serializer


class PermissionsSerializer(Serializer):
    """What the caller may do."""

    permissions = s.DictField(
        child=s.BooleanField(),
        help_text="`policies:create` and its like: names of rules without `sluice:` in front, whether each allows it",
    )
