"""Uploaded workload metrics: native code that counts in Swift's proxies, once it is started.

A new metric is stopped.  Sentences cannot use its name before it is started; it cannot be stopped while policies
or running controllers watch it, unless ``force`` is given: they then observe silence.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.nodes import AWAY, cluster_now
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_controller.code import revisions, rollout
from sluice_controller.code.revisions import CodeKind, IncomingCode, RegisteredCode
from sluice_controller.code.rollout import STOPPED, NodeInstance
from sluice_controller.validation import names
from sluice_core.describe import MetricInfo
from sluice_core.errors import CallerError, Conflict, NotFound
from sluice_core.messages.registry import ALIAS, METRIC_ENTRY, TERM
from sluice_core.messages.uploads import CONTROLLER_CODE, METRIC_CODE, Upload, upload_key
from sluice_core.store.records import Draft
from sluice_dsl.syntax.keywords import RESERVED
from sluice_metrics.native import metric_info

_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
#: Kinds of registry entries whose names must differ from those of metrics.
_RIVALS: Final = (METRIC_ENTRY, ALIAS, TERM)


def uploaded_metrics(contents: CacheContents) -> dict[str, Upload]:
    """All uploaded metrics by name, also those that are stopped."""
    return revisions.uploads_of_kind(contents, METRIC_CODE)


def put_code(
    backend: Backend, name: str, given: IncomingCode, by: str, expected: int | None = None
) -> tuple[RegisteredCode, bool]:
    """Store code as a new metric, which is stopped, or as another revision; return whether it is new.

    :raises CallerError: 413, 422, or 400 with the fault in the code
    :raises Conflict: when the name is taken, or the unit or a level in the condition of a policy would change
    """
    name = name.upper()
    old = _METRICS.find_or_new(backend, name, by, expected)
    if old.version:
        return _METRICS.put_code(backend, old, given, Draft(by)), False
    check_name(name)
    names.refuse_clash(name, names.condition_meanings(name, backend.catalogue))
    return _METRICS.put_code(backend, old, given, Draft(by, expect=_no_rivals(name))), True


def check_name(name: str) -> None:
    """
    :raises CallerError: when it is not a valid name of a metric
    """
    if not _NAME.fullmatch(name):
        raise CallerError(f"`{name}` cannot be part of a routing key, expected upper case letters, digits and `_`")
    if name in RESERVED:
        raise CallerError(f"`{name}` is a word of the language, expected another name")


def _no_rivals(name: str) -> dict[str, int]:
    return {f"entry/{kind}/{name}": 0 for kind in _RIVALS}


def _accept(backend: Backend, old: Upload, new: Upload) -> None:
    info = metric_info(new)
    others = {name: one for name, one in backend.catalogue.metrics.items() if name != new.keyword}
    for alias in info.aliases:
        taken = alias in others or any(alias in one.aliases for one in others.values())
        if taken or alias in backend.catalogue.metrics_by_alias:
            raise Conflict(f"the code has the alias `{alias}`, which belongs to another metric")
    if old.sha256 and _means_another(metric_info(old), info):
        refuse_used(backend, new.keyword, "have another unit or fewer levels")


class _MetricKind(CodeKind):
    def find(self, backend: Backend, name: str, expected: int | None = None) -> RegisteredCode:
        """One uploaded metric.

        :raises NotFound: when there is none; the message tells whether another metric has the name
        """
        name = name.upper()
        try:
            return super().find(backend, name, expected)
        except NotFound:
            if backend.catalogue.metric(name) is None:
                raise
            raise NotFound(f"metric `{name}` was not uploaded: it is part of the software or published") from None


_METRICS: Final = _MetricKind(METRIC_CODE, "uploaded metric", _accept)
find = _METRICS.find
roll_back = _METRICS.roll_back


def _means_another(old: MetricInfo, new: MetricInfo) -> bool:
    return old.unit != new.unit or not set(old.granularities) <= set(new.granularities)


def metric_users(contents: CacheContents, name: str) -> list[str]:
    """Policies, and running controllers as ``controller:<name>``, that watch the metric."""
    running = (
        f"controller:{one.keyword}"
        for one in revisions.uploads_of_kind(contents, CONTROLLER_CODE).values()
        if one.running and name in one.info.get("metrics", ())
    )
    return [*reference_guards.policies_watching(contents, name), *running]


def refuse_used(backend: Backend, name: str, what: str, force: bool = False) -> None:
    """Refuse to change a metric that policies or series watch.

    :raises Conflict: naming some of the policies and controllers
    """
    watching = [] if force else metric_users(backend.policy_cache.contents(), name)
    if watching:
        raise reference_guards.InUse(
            f"metric `{name}` cannot {what} while {reference_guards.name_some(watching)} watch it"
        )


def start(backend: Backend, name: str, by: str, expected: int | None = None) -> RegisteredCode:
    """Start measuring the metric, so that sentences can use it.

    :raises Conflict: when its name was taken meanwhile
    """
    old = find(backend, name, expected)
    if old.upload.running:
        return old
    name = old.upload.keyword
    names.refuse_clash(name, names.condition_meanings(name, backend.catalogue))
    return revisions.commit(backend, replace(old.upload, running=True), old.version, Draft(by, expect=_no_rivals(name)))


def stop(backend: Backend, name: str, by: str, force: bool, expected: int | None = None) -> RegisteredCode:
    """Stop measuring the metric.

    :raises Conflict: when policies or controllers watch it, unless ``force``
    """

    def once(seen: dict[str, int]) -> RegisteredCode:
        old = find(backend, name, expected)
        if not old.upload.running:
            return old
        refuse_used(backend, old.upload.keyword, "be stopped", force)
        return revisions.commit(backend, replace(old.upload, running=False), old.version, Draft(by, expect=seen))

    return reference_guards.unless_used(backend, f"upload/{upload_key(METRIC_CODE, name.upper())}", once, force)


def delete(backend: Backend, name: str, by: str, force: bool, expected: int | None = None) -> None:
    """Delete the metric.

    :raises Conflict: when policies or controllers watch it, unless ``force``
    """

    def once(seen: dict[str, int]) -> None:
        old = find(backend, name, expected)
        refuse_used(backend, old.upload.keyword, "be deleted", force)
        revisions.drop(backend, old, Draft(by, expect=seen))

    reference_guards.unless_used(backend, f"upload/{upload_key(METRIC_CODE, name.upper())}", once, force)


def instances(backend: Backend, name: str) -> list[NodeInstance]:
    """The metric on every node; on live nodes it is stopped if it was not started."""
    registered = find(backend, name)
    cluster = cluster_now(backend)
    shown = rollout.instances(registered, cluster)
    if registered.upload.running:
        return shown
    return [one if one.state == AWAY else replace(one, state=STOPPED) for one in shown]
