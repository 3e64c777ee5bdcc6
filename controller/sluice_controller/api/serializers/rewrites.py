"""The shapes of ``/rewrites``."""

from __future__ import annotations

from typing import Final

from rest_framework import serializers as s

from sluice_controller.api.serializers.base import (
    MillisecondsField,
    Serializer,
    UnixTimeField,
    computed,
    examples,
    page_of,
)
from sluice_rewrites.messages import GOALS, STATES

_COUNTS: Final = s.IntegerField


class RewriteExampleSerializer(Serializer):
    """An object that was not rewritten."""

    object = computed(lambda row: row[0], s.CharField(help_text="account/container/object"))
    reason = computed(lambda row: row[1], s.CharField())


class RewriteSerializer(Serializer):
    """A job that rewrites stored objects, with its progress; sizes are those of plain objects, in bytes."""

    id = s.CharField(source="job.id")
    target = s.CharField(help_text="account[/container[/prefix]], or CLUSTER")
    to = s.ChoiceField(GOALS, source="job.goal")
    state = s.ChoiceField(STATES)
    max_bw = computed(
        lambda view: view.job.max_bw or None,
        s.FloatField(allow_null=True, help_text="bytes per second; null: no limit"),
    )
    max_objects_sec = computed(
        lambda view: view.job.max_objects or None, s.FloatField(allow_null=True, help_text="null: no limit")
    )
    listed = computed(
        lambda view: not view.progress.listings, s.BooleanField(help_text="whether all containers are known")
    )
    accounts = s.IntegerField(help_text="number that it covers; 0 for CLUSTER until all accounts are known")
    containers = s.IntegerField(source="progress.containers", help_text="found so far")
    containers_done = s.IntegerField(source="progress.containers_done")
    objects = s.IntegerField(source="progress.objects", help_text="found so far, by the counters of containers")
    objects_done = s.IntegerField(source="progress.counts.seen", help_text="looked at")
    rewritten = s.IntegerField(source="progress.counts.rewritten")
    unchanged = s.IntegerField(source="progress.counts.unchanged", help_text="already in the wanted form, or deleted")
    skipped = s.DictField(child=_COUNTS(), source="progress.counts.skipped", help_text="by reason")
    failed = s.DictField(child=_COUNTS(), source="progress.counts.failed", help_text="by reason; create the job again")
    bytes = s.IntegerField(source="progress.bytes", help_text="found so far, by the counters of containers")
    bytes_done = s.IntegerField(source="progress.counts.seen_bytes", help_text="looked at")
    bytes_rewritten = s.IntegerField(source="progress.counts.rewritten_bytes")
    working = s.IntegerField(source="progress.claimed", help_text="pieces of work that rewriters have claimed")
    estimated_end = computed(
        lambda view: view.estimated_end, UnixTimeField(allow_null=True, help_text="at the present rate")
    )
    ended_at = UnixTimeField(source="progress.ended", allow_null=True)
    examples = RewriteExampleSerializer(many=True, source="progress.examples")
    warning = s.CharField(allow_blank=True, help_text="why it makes no progress, or why it failed")
    created_at = MillisecondsField(source="job.created")
    created_by = s.CharField(source="job.by")


RewritePageSerializer: Final = page_of("rewrites", RewriteSerializer, "Rewrites, oldest first.")


class NewRewriteSerializer(Serializer):
    """The objects to rewrite, and their goal."""

    target = s.CharField(help_text="tenant[/container[/prefix]], or CLUSTER")
    to = s.ChoiceField(GOALS, help_text="the policies in force, plain bytes, or the active key for encrypted objects")
    max_bw = s.JSONField(
        required=False, help_text="over all rewriters: a rate with its unit, as `20MBps`; a bare number is MB/s"
    )
    max_objects_sec = s.FloatField(required=False, help_text="objects per second over all rewriters")


REWRITES: Final = examples(
    ("as policies require", {"target": "AUTH_acme/logs/2026/", "to": "policies", "max_bw": "20MBps"}),
    ("plain bytes", {"target": "AUTH_acme", "to": "plain", "max_bw": 20, "max_objects_sec": 50}),
)
