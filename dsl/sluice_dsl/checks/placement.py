"""Where filters run, and the consequences: order across places, and the limits of a storage node.

On PUT filters on the proxy run before filters on a storage node, on GET after them.
Inside the storage node's disk file run reversible filters only, on replicas or on the fragments of an
erasure-coded policy; read-time filters run above it, where the whole object is available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from sluice_core.describe import FILTER, MOTIF, PROXY, REQUEST_ATTRIBUTES, STORAGE_NODE, STORLET, ActionInfo, Scalar
from sluice_core.errors import CallerError
from sluice_core.messages.policies import Target
from sluice_dsl.catalogue.base import ALL_ERASURE_CODED, Catalogue
from sluice_dsl.catalogue.vocabulary import SPACE_SAVING_FILTERS
from sluice_dsl.diagnostics import VALUE, Reporter, join_words
from sluice_dsl.plan import PlannedAction
from sluice_dsl.syntax import ast

_REQUEST_ATTRIBUTES: Final = frozenset(attribute.name for attribute in REQUEST_ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class Step:
    """One action as it was written, the description of its keyword, and its planned form."""

    written: ast.Action
    info: ActionInfo
    planned: PlannedAction

    @property
    def span(self) -> tuple[int, int]:
        """The span to mark for an error of the place."""
        return self.written.place_span if self.written.place else self.written.keyword.span


def is_about_requests(clause: ast.Clause) -> bool:
    """Whether ``clause`` tests single requests, not a metric."""
    return clause.subject.text in _REQUEST_ATTRIBUTES


def try_parameters(step: Step, check: Callable[[str, Mapping[str, Scalar]], object], reporter: Reporter) -> None:
    """Report the parameters of ``step`` that ``check`` refuses, unless another error was reported.

    :param check: takes the keyword and the parameters, and raises a ``CallerError``
    """
    if step.written.verb != "set" or reporter.has_error_within(step.written.span):
        return
    try:
        check(step.info.keyword, step.planned.params)
    except CallerError as error:
        reporter.error(f"`{step.info.keyword}`: {error}", step.written.keyword.span, code=VALUE)


def resolve_place(action: ast.Action, info: ActionInfo, reporter: Reporter) -> str:
    """Return the place where ``action`` runs; report an error when it cannot run there."""
    if info.kind == MOTIF and action.place:
        message = f"`{info.keyword}` is done by the daemons `sluice-motifs`, at no place in Swift: expected no ON"
        reporter.error(message, action.place_span)
        return info.default_place
    place = action.place or info.default_place
    reason = _unfit(info) if place == STORAGE_NODE and info.kind == FILTER else ""
    span = action.place_span if action.place else action.keyword.span
    if reason:
        reporter.error(f"`{info.keyword}` {reason}: expected `ON PROXY`", span)
    elif place not in info.places:
        where = join_words([f"`ON {one.upper()}`" for one in info.places])
        reporter.error(f"`{info.keyword}` does not run ON {place.upper()}, expected {where}", span)
    return place


def _unfit(info: ActionInfo) -> str:
    """Return the reason why a filter cannot run on any storage node; empty when it can."""
    if info.needs_whole_object:
        return "needs the whole object, and a storage node may hold only a fragment of it"
    if info.environment == STORLET and info.reversible:
        return "runs in a Storlets container, which the disk file of a storage node cannot enter"
    if info.on_put and info.changes_content and not info.reversible:
        return "changes what is stored for good, and only the proxy can tell Swift its new size and ETag"
    return ""


def check_pipeline(steps: Sequence[Step], target: Target | None, catalogue: Catalogue, reporter: Reporter) -> None:
    """Check the SET actions of one sentence against each other and their target."""
    filters = [step for step in steps if step.info.kind == FILTER]
    for earlier, later in combinations(filters, 2):
        _check_order(earlier, later, reporter)
    for step in filters:
        if step.planned.place == STORAGE_NODE and STORAGE_NODE in step.info.places:
            _check_fragments(step, target, catalogue, reporter)
            _check_reading(step, filters, reporter)


def _check_order(earlier: Step, later: Step, reporter: Reporter) -> None:
    """Check that written order, stages and places agree where both change the same bytes (design section 5, Order).

    For other pairs the written order has no effect.
    """
    first, second = earlier.info, later.info
    if not change_same_bytes(first, second):
        return
    if first.stage > second.stage:
        reporter.error(_misordered(first, second), later.written.keyword.span)
    elif violates_stage_order(earlier.planned, later.planned):
        reporter.error(
            f"{_against(first, second)}: expected `{first.keyword}` ON PROXY{_or_behind(first, second)}",
            later.written.span,
        )


def _misordered(first: ActionInfo, second: ActionInfo) -> str:
    """Return the error when ``first``, whose stage is later, is written before ``second``."""
    if _only_read(first, second):
        return (
            f"`{first.keyword}` reads before `{second.keyword}`, since GET runs the stages backwards"
            f" ({first.stage} and {second.stage}): write `{second.keyword}` first"
        )
    return (
        f"`{second.keyword}` runs before `{first.keyword}` (stages {second.stage} and {first.stage}):"
        f" write it first{_reason(first, second)}"
    )


def _against(first: ActionInfo, second: ActionInfo) -> str:
    """Return the error when ``first`` is on a storage node and ``second`` on the proxy."""
    if _only_read(first, second):
        before = f"`{first.keyword}` ON STORAGE_NODE would read before `{second.keyword}` ON PROXY"
        return f"{before}, and GET runs the stages backwards"
    before = f"`{second.keyword}` ON PROXY would run before `{first.keyword}` ON STORAGE_NODE"
    return f"{before}, whose stage is earlier{_reason(second, first)}"


def _only_read(first: ActionInfo, second: ActionInfo) -> bool:
    """Whether two filters that change the same bytes do so only on GET."""
    return _reads(first) and _reads(second) and not (_stores(first) and _stores(second))


def _reason(first: ActionInfo, second: ActionInfo) -> str:
    return f", since `{second.keyword}` cannot work on the output of `{first.keyword}`"


def _or_behind(first: ActionInfo, second: ActionInfo) -> str:
    return f" or `{second.keyword}` ON STORAGE_NODE" if STORAGE_NODE in second.places else ""


def _check_fragments(step: Step, target: Target | None, catalogue: Catalogue, reporter: Reporter) -> None:
    """Warn of the effect of an erasure-coded policy on a filter on the storage nodes."""
    share = catalogue.erasure_coding(target) if target is not None else ""
    if not share:
        return
    keyword = f"`{step.info.keyword}` ON STORAGE_NODE"
    if step.info.keyword in SPACE_SAVING_FILTERS:
        where = "" if share == ALL_ERASURE_CODED else "where the storage policy is erasure-coded, "
        reporter.warn(
            f"{where}{keyword} saves little: each node compresses fragments, and parity does not compress"
            " (0.47 of the size is left, against 0.35); consider `ON PROXY`",
            step.span,
        )
    elif share == ALL_ERASURE_CODED and _reads(step.info) and step.written.place:
        message = f"{keyword} will run on the proxy: nodes of an erasure-coded policy hold fragments of objects"
        reporter.warn(message, step.span)


def _check_reading(step: Step, filters: Sequence[Step], reporter: Reporter) -> None:
    """Warn that a storage node cannot read data that a filter on the proxy has changed."""
    if not (_reads(step.info) and step.written.place):
        return
    above = [
        f"`{other.info.keyword}`"
        for other in filters
        if other.planned.place == PROXY and other.info.reversible and other.info.changes_content
    ]
    if above:
        reporter.warn(
            f"`{step.info.keyword}` ON STORAGE_NODE will run on the proxy for objects that {join_words(above, 'and')}"
            " ON PROXY has changed",
            step.span,
        )


def _reads(info: ActionInfo) -> bool:
    """Whether it is a read-time filter that reads the content."""
    return info.on_get and info.changes_content and not info.reversible


def _stores(info: ActionInfo) -> bool:
    """Whether it is a stream filter that changes the stored bytes."""
    return info.on_put and info.changes_content and not info.on_request


def _accompanies(info: ActionInfo) -> bool:
    """Whether it is a request filter that changes bodies."""
    return info.on_request and info.changes_content


def violates_stage_order(action: PlannedAction, other: PlannedAction) -> bool:
    """True when two filters of one pipeline would run against the order of their stages."""
    first, second = (action, other) if action.stage <= other.stage else (other, action)
    if not action.kind == other.kind == FILTER or first.stage == second.stage:
        return False
    return first.place == STORAGE_NODE and second.place == PROXY


def change_same_bytes(info: ActionInfo, other: ActionInfo) -> bool:
    """Whether each receives the output of the other: in the stored bytes, in the read bytes, or around whole requests.

    Only then their order matters: a filter without changes may run anywhere, request filters always run next to the
    client, and read-time filters on the output of decoders.
    """
    return any(role(info) and role(other) for role in (_stores, _reads, _accompanies))
