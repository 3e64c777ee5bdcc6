"""The shapes of registered filters, of uploaded code, of ``/controllers`` and of the instances of code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import (
    EntrySerializer,
    MillisecondsField,
    PageSerializer,
    Serializer,
    UnixTimeField,
    computed,
    examples,
    page_of,
)
from sluice_controller.code.controllers import STATES, ControllerInstance, controller_state
from sluice_controller.code.rollout import METRIC_STATES
from sluice_core.describe import ENVIRONMENTS
from sluice_core.messages.uploads import Upload


class RegistrationSerializer(Serializer):
    """What a filter is.

    One for an isolated environment, or for volumes (`nbdkit`), is described here.  A `native` one says `reverse`,
    `capabilities`, `parameters` and `help` itself, in its code.
    """

    keyword = s.CharField(required=False, help_text="the word that sentences use; lower case, fixed once registered")
    environment = s.ChoiceField(
        ENVIRONMENTS,
        required=False,
        help_text="who runs its code; `native` code is for administrators only, since it runs inside Swift's processes "
        "with all their rights, and so is code for `nbdkit`, which filters volumes",
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


class EarlierRevisionSerializer(Serializer):
    """Code that was uploaded before and can be gone back to."""

    revision = s.IntegerField(source="number")
    sha256 = s.CharField()
    size = s.IntegerField()
    main = s.CharField(allow_blank=True)
    uploaded_at = MillisecondsField(source="created", allow_null=True)
    uploaded_by = s.CharField(source="created_by", allow_blank=True)


class CodeSerializer(Serializer):
    """What all uploaded code says of its revisions."""

    trailing = True

    sha256 = s.CharField(allow_blank=True)
    size = s.IntegerField()
    revision = s.IntegerField()
    uploaded_at = MillisecondsField(
        source="uploaded", allow_null=True, help_text="when the present code came; null while there is none"
    )
    uploaded_by = s.CharField(allow_blank=True)
    revisions = EarlierRevisionSerializer(many=True, help_text="earlier ones, newest first; so many are kept")


class CodeRefusalSerializer(Serializer):
    """A node that cannot run the newest revision."""

    node = s.CharField()
    reason = s.CharField(allow_blank=True)
    revision = s.IntegerField(help_text="the earlier one that it goes on with; 0: none")


class RolloutSerializer(Serializer):
    """How many of all nodes can run the newest revision; each of the others is in one of the lists."""

    total = s.IntegerField()
    nodes = s.IntegerField()
    refused = CodeRefusalSerializer(many=True)
    waiting = s.ListField(child=s.CharField(), help_text="have not said yet whether they can")
    away = s.ListField(child=s.CharField(), help_text="have not reported for a while")


class _FilterSerializer(CodeSerializer):
    """What a registered filter is, and its code."""

    id = s.CharField(source="keyword")
    keyword = s.CharField()
    environment = s.ChoiceField(ENVIRONMENTS)
    language = s.CharField(allow_blank=True)
    main = s.CharField(allow_blank=True)
    reverse = s.BooleanField()
    self_service = s.BooleanField()
    help = computed(lambda upload: upload.info.get("help", ""), s.CharField(allow_blank=True))
    parameters = computed(lambda upload: upload.info.get("parameters", []), s.ListField(child=s.DictField()))
    capabilities = computed(
        lambda upload: {name: value for name, value in upload.info.items() if name not in ("help", "parameters")},
        s.DictField(),
    )


class UploadSerializer(_FilterSerializer):
    """A registered filter, or an installed one.

    A registered one without ``sha256`` has no code yet and cannot be used; an installed one never has any here.
    """

    created = s.IntegerField(help_text="unix milliseconds; 0 for an installed filter")
    created_by = s.CharField(allow_blank=True)
    installed = s.BooleanField(
        help_text="whether it is installed with the software of the nodes: then it can be shown, and neither changed "
        "nor deleted"
    )
    rollout = RolloutSerializer(allow_null=True, help_text="null for an installed filter")


class RollbackSerializer(Serializer):
    """Which code is wanted again; without a number that of the revision before."""

    revision = s.IntegerField(required=False, min_value=1, help_text="one of `revisions`")


#: Accepted as they stand; a test posts them.
REGISTRATIONS: Final = examples(
    (
        "a WebAssembly filter that can be undone",
        {
            "keyword": "scramble",
            "environment": "wasm",
            "language": "wasm",
            "reverse": True,
            "capabilities": {"changes_length": False, "stage": 450},
            "help": "not a cipher",
        },
    ),
    (
        "a native filter, whose code says what it is",
        {"keyword": "watermark", "environment": "native", "self_service": True},
    ),
)

#: Accepted where there is such a revision; a test posts them.
ROLLBACKS: Final = examples(("to the one before", {}), ("to the first one", {"revision": 1}))


class ControllerSerializer(CodeSerializer, EntrySerializer):
    """A global controller: what its code says of itself, and whether it runs."""

    name = s.CharField(source="keyword")
    help = computed(lambda upload: upload.info.get("help", ""), s.CharField(allow_blank=True))
    metrics = computed(
        lambda upload: upload.info.get("metrics", ()), s.ListField(child=s.CharField(), help_text="what it watches")
    )
    period = computed(
        lambda upload: float(upload.info.get("period", 1.0)), s.FloatField(help_text="seconds between two runs")
    )
    main = s.CharField(help_text="the class that decides")
    running = s.BooleanField(help_text="whether it was started")
    state = s.ChoiceField(STATES)
    reason = s.CharField(allow_blank=True, help_text="why it failed, or why an earlier revision goes on")
    hosts = s.ListField(child=s.CharField(), help_text="the actor hosts that run it: one, but while it moves")

    @classmethod
    def render_on(cls, hosts: Sequence[ControllerInstance], upload: Upload) -> dict[str, Any]:
        """A controller and how it fares on the hosts that run it."""
        state, reason = controller_state(upload, hosts)
        return cls.render(upload, state=state, reason=reason, hosts=[one.host for one in hosts])


ControllerPageSerializer = page_of("controllers", ControllerSerializer, "Controllers by name.")


class ControllerInstanceSerializer(Serializer):
    """A controller on an actor host."""

    host = s.CharField()
    state = s.ChoiceField(STATES)
    reason = s.CharField(allow_blank=True)
    revision = s.IntegerField(help_text="of its code, as it runs there")
    since = UnixTimeField(allow_null=True)
    last_run = UnixTimeField(allow_null=True)
    seconds = s.FloatField(help_text="that its last run took")
    assignments = s.IntegerField(help_text="that it has in force")


class ControllerInstancesSerializer(PageSerializer):
    """Where a controller runs, by host; hosts that have not spoken for a while are left out."""

    instances = ControllerInstanceSerializer(many=True)


class MetricInstanceSerializer(Serializer):
    """An uploaded metric on a node."""

    node = s.CharField()
    state = s.ChoiceField(METRIC_STATES)
    reason = s.CharField(allow_blank=True, help_text="why the node cannot run the newest revision")
    revision = s.IntegerField(help_text="that it can run; 0: none")


class MetricInstancesSerializer(PageSerializer):
    """An uploaded metric on all nodes, by name."""

    instances = MetricInstanceSerializer(many=True)
