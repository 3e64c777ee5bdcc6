"""The shapes of ``/changes``, rollback and import."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import Serializer, UnixTimeField, computed
from sluice_controller.api.serializers.cluster import HeadSerializer
from sluice_controller.api.serializers.effective import StepSerializer
from sluice_controller.configuration.changes import touched_policies
from sluice_controller.configuration.configuration import HOWS, WHATS, ConfigurationChange
from sluice_controller.configuration.export import CODE_SECTIONS
from sluice_core.messages.base import Message
from sluice_core.messages.policies import Change, Entry, Policy
from sluice_core.messages.uploads import FILTER_CODE

#: Kind of code → its section in documents.
_SECTIONS: Final = {kind: section for section, kind in CODE_SECTIONS.items()}
#: The maximum number of differences in an answer.
LARGEST_DIFFERENCE: Final = 1000


class ChangeSerializer(Serializer):
    """One atomic change."""

    epoch = s.IntegerField()
    at = UnixTimeField()
    by = s.CharField(allow_blank=True, help_text="the author; `actors@…` is an actor host")
    policies = computed(
        touched_policies,
        s.ListField(
            child=s.CharField(),
            help_text="the changed policies; `controller:<name>` stands for the assignments of a controller",
        ),
    )
    filters = s.ListField(child=s.CharField(), help_text="registered filters, by keyword")
    metrics = s.ListField(child=s.CharField(), help_text="uploaded metrics")
    controllers = s.ListField(child=s.CharField())
    entries = computed(
        lambda change: [*(one.key for one in change.entries), *change.entry_drops],
        s.ListField(child=s.CharField(), help_text="entries of the registry, as kind/name"),
    )
    set = computed(lambda change: len(change.puts), s.IntegerField(help_text="assignments that were put into force"))
    taken_back = computed(
        lambda change: len(change.drops), s.IntegerField(help_text="assignments that were taken back")
    )

    @classmethod
    def render(cls, thing: Change, **given: Any) -> dict[str, Any]:
        """One change, with the uploaded code that it changes, by the sections of documents."""
        code: dict[str, list[str]] = {section: [] for section in CODE_SECTIONS}
        for key in dict.fromkeys((*(one.key for one in thing.uploads), *thing.upload_drops)):
            kind, slash, name = key.partition("/")
            code[_SECTIONS[kind] if slash else _SECTIONS[FILTER_CODE]].append(name if slash else key)
        return super().render(thing, **code, **given)


class OldestSerializer(Serializer):
    """The oldest change that is kept."""

    epoch = s.IntegerField()
    at = UnixTimeField()


class ChangePageSerializer(Serializer):
    """A page of changes, newest first."""

    changes = ChangeSerializer(many=True)
    next_marker = computed(
        lambda page: page.next_marker or None,
        s.CharField(allow_null=True, help_text="`marker` of the next page, which may be empty; null at the end"),
    )
    head = HeadSerializer()
    trimmed = s.BooleanField(help_text="whether changes before `oldest` were removed")
    oldest = OldestSerializer(allow_null=True)


class DifferenceSerializer(Serializer):
    """One policy, entry, or piece of uploaded code that differs from before."""

    what = s.ChoiceField(WHATS)
    name = s.CharField()
    how = s.ChoiceField(HOWS)
    before = computed(lambda difference: _document(difference.old), s.DictField(allow_null=True))
    after = computed(lambda difference: _document(difference.new), s.DictField(allow_null=True))


def _document(message: Message | None) -> dict[str, Any] | None:
    if isinstance(message, Policy):
        return {"policy": message.text, "enabled": message.enabled, "created_by": message.created_by}
    if isinstance(message, Entry):
        return dict(message.data)
    return None if message is None else message.to_data()


class ChangeDetailSerializer(ChangeSerializer):
    """One atomic change, with the documents that it replaced."""

    history = s.CharField()
    assignments = StepSerializer(source="puts", many=True, help_text="the assignments that were put into force")
    dropped = s.ListField(source="drops", child=s.CharField(), help_text="ids of the assignments that were taken back")
    differences = DifferenceSerializer(
        many=True, allow_null=True, help_text="null if the replaced documents are not kept any more"
    )


class OutcomeSerializer(Serializer):
    """The changes that were made, or with `plan` would be made."""

    plan = s.BooleanField(help_text="true: nothing was changed")
    epoch = s.IntegerField(help_text="the epoch of the configuration")
    version = s.IntegerField(help_text="the value of `ETag`")
    create = s.IntegerField()
    replace = s.IntegerField()
    delete = s.IntegerField()
    changes = computed(
        lambda outcome: outcome.changes[:LARGEST_DIFFERENCE],
        DifferenceSerializer(many=True, help_text="the first 1000"),
    )

    @classmethod
    def render(cls, thing: ConfigurationChange, **given: Any) -> dict[str, Any]:
        """The changes that were made, or with ``plan`` would be made, and their numbers by kind."""
        counts = {how: sum(one.how == how for one in thing.changes) for how in HOWS}
        return super().render(thing, **counts, **given)
