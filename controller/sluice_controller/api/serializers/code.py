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
    """The description of a filter.

    One for an isolated environment, or for volumes (`nbdkit`), is described here.  The code of a `native` one contains
    `reverse`, `capabilities`, `parameters` and `help`.
    """

    keyword = s.CharField(required=False, help_text="the word that sentences use; lower case, fixed once registered")
    environment = s.ChoiceField(
        ENVIRONMENTS,
        required=False,
        help_text="where its code runs; `native` code is for administrators only, since it runs inside Swift's "
        "processes with all their rights, and so is code for `nbdkit`, which filters volumes",
    )
    language = s.CharField(
        required=False, allow_blank=True, help_text="python, java or wasm, as supported by the environment"
    )
    main = s.CharField(required=False, allow_blank=True, help_text="the class to run, if the environment needs one")
    reverse = s.BooleanField(required=False, default=False, help_text="whether a GET undoes the change of a PUT")
    capabilities = s.DictField(required=False, help_text="fields of a filter: on_put, on_get, changes_length, stage …")
    parameters = s.ListField(child=s.DictField(), required=False)
    help = s.CharField(required=False, allow_blank=True)
    self_service = s.BooleanField(
        required=False, default=False, help_text="whether members may use it for their own containers"
    )


class EarlierRevisionSerializer(Serializer):
    """Earlier code that can be restored."""

    revision = s.IntegerField(source="number")
    sha256 = s.CharField()
    size = s.IntegerField()
    main = s.CharField(allow_blank=True)
    uploaded_at = MillisecondsField(source="created", allow_null=True)
    uploaded_by = s.CharField(source="created_by", allow_blank=True)


class CodeSerializer(Serializer):
    """The revisions of uploaded code of any kind."""

    trailing = True

    sha256 = s.CharField(allow_blank=True)
    size = s.IntegerField()
    revision = s.IntegerField()
    uploaded_at = MillisecondsField(
        source="uploaded", allow_null=True, help_text="time of the last upload; null without code"
    )
    uploaded_by = s.CharField(allow_blank=True)
    revisions = EarlierRevisionSerializer(many=True, help_text="earlier ones, newest first, as many as are kept")


class CodeRefusalSerializer(Serializer):
    """A node that cannot run the newest revision."""

    node = s.CharField()
    reason = s.CharField(allow_blank=True)
    revision = s.IntegerField(help_text="the earlier one that it runs; 0: none")


class RolloutSerializer(Serializer):
    """The number of nodes that can run the newest revision; each other node is in one of the lists."""

    total = s.IntegerField()
    nodes = s.IntegerField()
    refused = CodeRefusalSerializer(many=True)
    waiting = s.ListField(child=s.CharField(), help_text="have not reported yet whether they can")
    away = s.ListField(child=s.CharField(), help_text="have not reported for a while")


class _FilterSerializer(CodeSerializer):
    """A registered filter and its code."""

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

    A registered one without ``sha256`` has no code yet and cannot be used; an installed one has no code here.
    """

    created = s.IntegerField(help_text="Unix milliseconds; 0 for an installed filter")
    created_by = s.CharField(allow_blank=True)
    installed = s.BooleanField(help_text="whether it is installed with the software of the nodes; then it is read-only")
    rollout = RolloutSerializer(allow_null=True, help_text="null for an installed filter")


class RollbackSerializer(Serializer):
    """The code to restore; without a number that of the revision before."""

    revision = s.IntegerField(required=False, min_value=1, help_text="one of `revisions`")


#: A test posts these bodies unchanged.
REGISTRATIONS: Final = examples(
    (
        "a reversible WebAssembly filter",
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
        "a native filter, described by its code",
        {"keyword": "watermark", "environment": "native", "self_service": True},
    ),
)

#: Accepted if there is such a revision; a test posts them.
ROLLBACKS: Final = examples(("to the one before", {}), ("to the first one", {"revision": 1}))


class ControllerSerializer(CodeSerializer, EntrySerializer):
    """A global controller: the description in its code, and its state."""

    name = s.CharField(source="keyword")
    help = computed(lambda upload: upload.info.get("help", ""), s.CharField(allow_blank=True))
    metrics = computed(
        lambda upload: upload.info.get("metrics", ()), s.ListField(child=s.CharField(), help_text="what it reads")
    )
    period = computed(
        lambda upload: float(upload.info.get("period", 1.0)), s.FloatField(help_text="seconds between two runs")
    )
    main = s.CharField(help_text="the class that decides")
    running = s.BooleanField(help_text="whether it is started")
    state = s.ChoiceField(STATES)
    reason = s.CharField(allow_blank=True, help_text="why it failed, or why an earlier revision runs")
    hosts = s.ListField(child=s.CharField(), help_text="the actor hosts that run it: one, except while it moves")

    @classmethod
    def render_on(cls, hosts: Sequence[ControllerInstance], upload: Upload) -> dict[str, Any]:
        """A controller with its state on the hosts that run it."""
        state, reason = controller_state(upload, hosts)
        return cls.render(upload, state=state, reason=reason, hosts=[one.host for one in hosts])


ControllerPageSerializer = page_of("controllers", ControllerSerializer, "Controllers by name.")


class ControllerInstanceSerializer(Serializer):
    """A controller on an actor host."""

    host = s.CharField()
    state = s.ChoiceField(STATES)
    reason = s.CharField(allow_blank=True)
    revision = s.IntegerField(help_text="the revision that runs there")
    since = UnixTimeField(allow_null=True)
    last_run = UnixTimeField(allow_null=True)
    seconds = s.FloatField(help_text="duration of its last run")
    assignments = s.IntegerField(help_text="number of its assignments in force")


class ControllerInstancesSerializer(PageSerializer):
    """The hosts that run a controller; hosts that have not reported for a while are left out."""

    instances = ControllerInstanceSerializer(many=True)


class MetricInstanceSerializer(Serializer):
    """An uploaded metric on a node."""

    node = s.CharField()
    state = s.ChoiceField(METRIC_STATES)
    reason = s.CharField(allow_blank=True, help_text="why the node cannot run the newest revision")
    revision = s.IntegerField(help_text="the revision that the node can run; 0: none")


class MetricInstancesSerializer(PageSerializer):
    """An uploaded metric on all nodes, by name."""

    instances = MetricInstanceSerializer(many=True)
