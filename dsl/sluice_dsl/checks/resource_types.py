"""Objects and volumes: which resource types an action applies to, and the consequences for its sentence.

Tenants and the cluster have both.  There an action about both applies to both, and an action about volumes only does
not change objects.

Changes of a volume's content are decided when it is attached for the first time, and stay: no metric and no TRANSIENT
can change them afterwards.  For objects they can, so with a condition such an action applies only to a tenant's
objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sluice_core.describe import KONNECTOR, OBJECTS, TIER, VOLUMES, ActionInfo
from sluice_core.messages.policies import LEVELS_ABOUT, NAME, OBJECT, VOLUME, Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.bandwidth_checks import GUARANTEE_KINDS
from sluice_dsl.checks.placement import Step, is_about_requests, resolve_place, try_parameters
from sluice_dsl.diagnostics import CONFLICT, Reporter
from sluice_dsl.plan import TRANSIENT
from sluice_dsl.syntax import ast
from sluice_volumes.actions import check_parameters

_FIXED: Final = "changes what a volume stores, which is decided when it is attached for the first time"


def resolve_resource_type(
    action: ast.Action, info: ActionInfo, target: Target | None, conditional: bool, reporter: Reporter
) -> tuple[str, ...]:
    """Return the resource types of ``target`` (None when that has an error) that the action applies to; report an error
    when there is none.

    :param conditional: whether the sentence has a condition
    """
    only = None if target is None else LEVELS_ABOUT.get(target.level)
    if target is None or only is None:
        both = OBJECTS in info.about and VOLUMES in info.about
        return (OBJECTS,) if both and conditional and info.changes_content else info.about
    if only not in info.about and info.kind not in GUARANTEE_KINDS:  # these check their targets themselves
        article = "an" if target.level == OBJECT else "a"
        whom = f"target is {article} {target.level}" if target.select == NAME else f"targets are {target.level}s"
        reporter.error(f"`{info.keyword}` is about {info.about[0]}, and the {whom}", action.keyword.span)
    return (only,)


def resolve_place_about(action: ast.Action, info: ActionInfo, about: tuple[str, ...], reporter: Reporter) -> str:
    """Return the place of ``action``; volumes have their place where they are used, which no sentence names."""
    if OBJECTS in about:
        return resolve_place(action, info, reporter)
    if action.place and VOLUMES in info.about:
        message = f"ON {action.place.upper()} is about objects, `{info.keyword}` of volumes is done where they are used"
        reporter.error(f"{message}: expected no ON", action.place_span)
    return KONNECTOR


def check_resource_types(
    sentence: ast.Sentence, steps: Iterable[Step], target: Target | None, catalogue: Catalogue, reporter: Reporter
) -> None:
    """Report actions that volumes do not support, and warn of actions that leave volumes unchanged."""
    for step in steps:
        if OBJECTS not in step.planned.about:
            _check_lasting(step, reporter)
            _check_clauses(sentence.condition, step, reporter)
            try_parameters(step, check_parameters, reporter)
        elif VOLUME in catalogue.levels and _is_narrowed(step, target):
            message = f"`{step.info.keyword}` {_FIXED}: with a condition it holds for objects alone"
            reporter.warn(message, step.written.keyword.span)


def _is_narrowed(step: Step, target: Target | None) -> bool:
    """Whether the target has volumes and the action could apply to them, but does not."""
    has_volumes = target is not None and target.level not in LEVELS_ABOUT
    return has_volumes and VOLUMES in step.info.about and VOLUMES not in step.planned.about


def _check_lasting(step: Step, reporter: Reporter) -> None:
    """Refuse to remove actions that cannot be removed."""
    if step.planned.life != TRANSIENT:
        return
    if step.info.kind == TIER:
        message = "a volume does not return to its former tier by itself"
        reporter.error(f"{message}: expected PERSISTENT, not TRANSIENT", step.written.life_span)
    elif step.info.changes_content:
        message = f"`{step.info.keyword}` {_FIXED}: expected PERSISTENT, not TRANSIENT"
        reporter.error(message, step.written.life_span, code=CONFLICT)


def _check_clauses(condition: ast.Condition | None, step: Step, reporter: Reporter) -> None:
    for clause in ast.clauses(condition):
        if is_about_requests(clause):
            name, keyword = clause.subject.text, step.info.keyword
            message = f"`{name}` asks about requests for objects, and `{keyword}` is about volumes here"
            reporter.error(f"{message}: expected metrics alone", clause.subject.span)
        elif step.info.changes_content:
            reporter.error(f"`{step.info.keyword}` {_FIXED}: expected no metric in WHEN", clause.span, code=CONFLICT)
