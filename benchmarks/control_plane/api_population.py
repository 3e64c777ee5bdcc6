"""Policies of a large cluster for the API: static and dynamic ones, their states, and reporting nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from sluice_controller.catalog.vocabulary import build_catalogue
from sluice_core.messages.nodes import NodeReport
from sluice_core.messages.policies import Assignment, Firing, Policy, PolicyState
from sluice_core.store.records import Draft
from sluice_core.store.store import Store
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.compile import compile_text
from sluice_dsl.plan import assignment_for, static_assignments

OF_EACH_TENANT: Final = 10
NODES: Final = 12
_BATCH: Final = 500
#: The middle of 2026, in milliseconds: policies are a millisecond apart.
_BEGUN: Final = 1_780_000_000_000
#: Nodes of the measurement report once, and must not expire during it.
_AHEAD: Final = 3600.0


def tenant(number: int) -> str:
    """The account of the tenant of policy ``number``."""
    return f"AUTH_{number // OF_EACH_TENANT:032x}"


def sentence(number: int, account: str) -> str:
    """The sentence of a policy: half are static, half watch a metric; nine in ten are about containers."""
    target = f"CONTAINER {account}/c{number}" if number % OF_EACH_TENANT else f"TENANT {account}"
    when = "" if number % 2 else f" WHEN PUTS_SEC > {number % 7 + 1}"
    life = "" if number % 2 else " TRANSIENT"
    return f"FOR {target}{when} DO SET compression WITH engine=zstd{life}"


def populate(store: Store, count: int) -> list[Policy]:
    """Write ``count`` policies as the API would, and the data that actors and agents would have written about them."""
    catalogue = build_catalogue()
    found: list[Policy] = []
    for first in range(0, count, _BATCH):
        drafts = [_written(catalogue, number) for number in range(first, min(count, first + _BATCH))]
        policies = [policy for policy, _, _ in drafts]
        puts = tuple(put for _, puts, _ in drafts for put in puts)
        states = tuple(state for _, _, state in drafts if state is not None)
        store.commit(Draft("benchmark", puts, policies=tuple(policies), states=states))
        found += policies
    for report in _reports(store, count):
        store.report(report)
    return found


def _written(catalogue: Catalogue, number: int) -> tuple[Policy, Sequence[Assignment], PolicyState | None]:
    (one,) = compile_text(sentence(number, tenant(number)), catalogue)
    plan, name, created = one.plan, f"{number:012x}", _BEGUN + number
    policy = Policy(name, one.source, one.text, plan.to_data(), plan.dynamic, created, "benchmark")
    if not plan.dynamic:
        return policy, static_assignments(name, plan, created), None
    if number % 4:  # the actor never had a decision to write
        return policy, (), None
    firing = Firing(created / 1000, "set", window=created // 1000)
    state = PolicyState(name, "active", {"": {"seen": created // 1000}}, (firing,))
    return policy, (assignment_for(name, plan, 0, created, True),), state


def _reports(store: Store, count: int) -> Iterator[NodeReport]:
    head = store.head()
    at = time.time() + _AHEAD
    for number in range(NODES):
        yield NodeReport(f"node{number}", head.history, head.epoch, assignments=count, workers=4, at=at)
