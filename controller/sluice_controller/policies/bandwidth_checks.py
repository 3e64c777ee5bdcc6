"""Errors and warnings about bandwidth objectives on this cluster as it is now (``sluice_dsl.bandwidth_doubts``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.nodes import current_report, shortfall
from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_dsl import bandwidth_doubts
from sluice_dsl.bandwidth_doubts import Standing, bandwidth_actions, names_storage_policy
from sluice_dsl.compile import Compiled
from sluice_dsl.diagnostics import Diagnostic
from sluice_dsl.plan import Plan


def check_bandwidth(
    backend: Backend, text: str, compiled: Sequence[Compiled], others: Iterable[CachedPolicy]
) -> tuple[Compiled, ...]:
    """``compiled``, all that became of ``text``, with the doubts about it among the warnings.

    :param others: the policies that stand beside it
    :raises PolicyErrors: when it names a storage policy that there is not
    """
    policies = _policies(backend, [one.plan for one in compiled])
    return bandwidth_doubts.check_bandwidth(text, compiled, _standing(others), policies)


def bandwidth_status(backend: Backend, cached: CachedPolicy) -> dict[str, Any]:
    """Of a policy that stands: what is missing to keep its promise, and what else keeps it from doing what it says.

    Warnings are about its canonical text.
    """
    if not bandwidth_actions(cached.plan):
        return {"infeasible": None, "warnings": []}
    report = current_report(backend)
    doubts = _standing_doubts(backend, report, cached) if cached.policy.enabled else []
    return {"infeasible": shortfall(report, cached.policy.id), "warnings": [one.to_data() for one in doubts]}


def _standing_doubts(backend: Backend, report: BandwidthReport | None, cached: CachedPolicy) -> list[Diagnostic]:
    sentences = cached.sentences()
    if len(sentences) != 1:
        return []
    others = (one for one in backend.policy_cache.contents().ordered if one.policy.id != cached.policy.id)
    policies = report.policies if report else {}
    return bandwidth_doubts.standing_doubts(cached.policy.text, cached.plan, sentences[0], _standing(others), policies)


def _policies(backend: Backend, plans: Iterable[Plan]) -> Mapping[str, str]:
    """The storage policies that nodes tell of now, by index; asked for only when a plan names one."""
    if not any(map(names_storage_policy, plans)):
        return {}
    report = current_report(backend)
    return report.policies if report else {}


def _standing(others: Iterable[CachedPolicy]) -> Iterator[Standing]:
    for one in others:
        if one.policy.enabled:
            yield f"policy `{one.policy.id}`", one.plan
