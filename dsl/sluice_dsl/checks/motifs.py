"""``elasticity`` and ``motif``: the parameters of a space as a whole, and those of the named template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sluice_core.describe import ActionInfo, Parameter
from sluice_core.messages.elasticity import ATTACH, ELASTICITY
from sluice_core.messages.policies import OBJECT, Target
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.placement import Step, is_about_requests, try_parameters
from sluice_dsl.diagnostics import Reporter
from sluice_dsl.syntax import ast
from sluice_motif_control.actions import TEMPLATE, check_parameters


def with_template(action: ast.Action, info: ActionInfo, catalogue: Catalogue) -> ActionInfo:
    """Return ``info`` with the parameters of the named template; for an unknown template they may be any."""
    if info.keyword != ATTACH or not info.available:
        return info
    written = next((one.value for one in action.parameters if one.name.text.lower() == TEMPLATE), None)
    if written is None:
        return info
    template = catalogue.templates.get(written.text.lower())
    if template is not None:
        return replace(info, parameters=(*info.parameters, *template.parameters))
    own = {one.name for one in info.parameters}
    names = dict.fromkeys(one.name.text.lower() for one in action.parameters)
    free = tuple(Parameter(name, "str", "") for name in names if name not in own)
    return replace(info, parameters=(*info.parameters, *free))


def check_motifs(sentence: ast.Sentence, steps: Sequence[Step], target: Target | None, reporter: Reporter) -> None:
    """Refuse combinations that are invalid for a space (``target`` is None when that has an error)."""
    for step in steps:
        if step.info.keyword != ELASTICITY:
            continue
        if target is not None and target.level == OBJECT:
            message = f"`{ELASTICITY}` is kept by containers, tenants and the cluster, not by single objects"
            reporter.error(f"{message}: expected `CONTAINER …`", step.written.keyword.span)
        for clause in filter(is_about_requests, ast.clauses(sentence.condition)):
            message = f"`{clause.subject.text}` asks about single requests, and `{ELASTICITY}` applies to all objects"
            reporter.error(f"{message} of its target: expected metrics alone", clause.subject.span)
        try_parameters(step, check_parameters, reporter)
