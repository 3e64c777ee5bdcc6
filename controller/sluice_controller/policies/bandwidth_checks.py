"""Errors and warnings about bandwidth objectives in the present cluster (``sluice_dsl.bandwidth_doubts``)."""

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
    """Return ``compiled``, all sentences of ``text``, with the doubts about them among the warnings.

    :param others: the existing policies
    :raises PolicyErrors: when a sentence names a storage policy that does not exist
    """
    policies = _policies(backend, [one.plan for one in compiled])
    return bandwidth_doubts.check_bandwidth(text, compiled, _standing(others), policies)


def bandwidth_status(backend: Backend, cached: CachedPolicy) -> dict[str, Any]:
    """The bandwidth that the objectives of an existing policy lack, and the warnings about it.

    The positions of warnings are in its canonical text.
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
    """The storage policies in the present reports of nodes, by index; read only if a plan names one."""
    if not any(map(names_storage_policy, plans)):
        return {}
    report = current_report(backend)
    return report.policies if report else {}


def _standing(others: Iterable[CachedPolicy]) -> Iterator[Standing]:
    for one in others:
        if one.policy.enabled:
            yield f"policy `{one.policy.id}`", one.plan
