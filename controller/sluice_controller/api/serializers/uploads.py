"""The shapes of registered filters and of uploaded code, for the schema only."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers as s

from sluice_core.describe import ENVIRONMENTS


class RegistrationSerializer(s.Serializer):
    """What a filter is.

    One for an isolated environment is described here.  A `native` one says `reverse`, `capabilities`, `parameters` and
    `help` itself, in its code.
    """

    keyword = s.CharField(required=False, help_text="the word that sentences use; lower case, fixed once registered")
    environment = s.ChoiceField(
        ENVIRONMENTS,
        required=False,
        help_text="who runs its code; `native` code is for administrators only, since it runs inside Swift's processes "
        "with all their rights",
    )
    language = s.CharField(
        required=False, allow_blank=True, help_text="python, java or wasm, as the environment knows it"
    )
    main = s.CharField(required=False, allow_blank=True, help_text="the class to run, where the environment needs one")
    reverse = s.BooleanField(required=False, default=False, help_text="a GET undoes what a PUT did")
    capabilities = s.DictField(required=False, help_text="fields of a filter: on_put, on_get, changes_length, stage …")
    parameters = s.ListField(child=s.DictField(), required=False)
    help = s.CharField(required=False, allow_blank=True)
    self_service = s.BooleanField(
        required=False, default=False, help_text="members may use it for their own containers"
    )


class EarlierRevisionSerializer(s.Serializer):
    """Code that was uploaded before and can be gone back to."""

    revision = s.IntegerField()
    sha256 = s.CharField()
    size = s.IntegerField()
    main = s.CharField(allow_blank=True)
    uploaded_at = s.DateTimeField(allow_null=True)
    uploaded_by = s.CharField(allow_blank=True)


class CodeSerializer(s.Serializer):
    """What all uploaded code says of its revisions."""

    sha256 = s.CharField(allow_blank=True)
    size = s.IntegerField()
    revision = s.IntegerField()
    uploaded_at = s.DateTimeField(allow_null=True, help_text="when the present code came; null while there is none")
    uploaded_by = s.CharField(allow_blank=True)
    revisions = EarlierRevisionSerializer(many=True, help_text="earlier ones, newest first; so many are kept")


class CodeRefusalSerializer(s.Serializer):
    """A node that cannot run the newest revision."""

    node = s.CharField()
    reason = s.CharField(allow_blank=True)
    revision = s.IntegerField(help_text="the earlier one that it goes on with; 0: none")


class RolloutSerializer(s.Serializer):
    """How many of all nodes can run the newest revision; each of the others is in one of the lists."""

    total = s.IntegerField()
    nodes = s.IntegerField()
    refused = CodeRefusalSerializer(many=True)
    waiting = s.ListField(child=s.CharField(), help_text="have not said yet whether they can")
    away = s.ListField(child=s.CharField(), help_text="have not reported for a while")


class UploadSerializer(CodeSerializer):
    """A registered filter; without ``sha256`` it has no code yet and cannot be used."""

    id = s.CharField()
    keyword = s.CharField()
    environment = s.ChoiceField(ENVIRONMENTS)
    language = s.CharField(allow_blank=True)
    main = s.CharField(allow_blank=True)
    reverse = s.BooleanField()
    capabilities = s.DictField()
    parameters = s.ListField(child=s.DictField())
    help = s.CharField(allow_blank=True)
    self_service = s.BooleanField()
    rollout = RolloutSerializer()
    created = s.IntegerField(help_text="unix milliseconds")
    created_by = s.CharField(allow_blank=True)


class RollbackSerializer(s.Serializer):
    """Which code is wanted again; without a number that of the revision before."""

    revision = s.IntegerField(required=False, min_value=1, help_text="one of `revisions`")


#: Accepted as they stand; a test posts them.
REGISTRATIONS = [
    OpenApiExample(
        "a WebAssembly filter that can be undone",
        value={
            "keyword": "scramble",
            "environment": "wasm",
            "language": "wasm",
            "reverse": True,
            "capabilities": {"changes_length": False, "stage": 450},
            "help": "not a cipher",
        },
        request_only=True,
    ),
    OpenApiExample(
        "a native filter, whose code says what it is",
        value={"keyword": "watermark", "environment": "native", "self_service": True},
        request_only=True,
    ),
]

#: Accepted where there is such a revision; a test posts them.
ROLLBACKS = [
    OpenApiExample("to the one before", value={}, request_only=True),
    OpenApiExample("to the first one", value={"revision": 1}, request_only=True),
]
