"""Compiles a text of sentences to plans, or reports all of its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sluice_dsl.catalogue.base import Catalogue, expand_aliases
from sluice_dsl.checks.attributes import check_attributes
from sluice_dsl.checks.conflicts import ExistingPolicy, check_conflicts
from sluice_dsl.checks.sentence import check_sentence
from sluice_dsl.diagnostics import CONFLICT, ERROR, WARNING, Diagnostic, PolicyConflict, PolicyErrors, Reporter
from sluice_dsl.plan import Plan
from sluice_dsl.syntax.ast import Sentence
from sluice_dsl.syntax.grammar import parse

#: Problems of one text that are shown.
MOST_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Compiled:
    """One sentence: as written, parsed, in canonical form, its plan and its warnings."""

    source: str
    sentence: Sentence
    text: str
    plan: Plan
    warnings: tuple[Diagnostic, ...] = ()


def compile_text(
    text: str,
    catalogue: Catalogue,
    existing: Sequence[ExistingPolicy] | Callable[[str], Sequence[ExistingPolicy]] = (),
    kept: bool = False,
) -> list[Compiled]:
    """Return the plans of all sentences in ``text``, each also checked against those before it.

    :param existing: policies to check against; or a function from an account (empty: none in particular) to the
        policies that may contradict a policy about it
    :param kept: the text was accepted before: errors of new text that would never act become warnings

    :raises PolicyErrors: with every error of every sentence; it is a
        :class:`~sluice_dsl.diagnostics.PolicyConflict` when the only errors are contradictions with existing policies,
        or with fixed properties of a volume
    """
    reporter = Reporter(text)
    earlier = [] if callable(existing) else list(existing)
    plans: list[tuple[Sentence, Plan]] = []
    for sentence in parse(text, reporter):
        meant = expand_aliases(sentence, catalogue)
        plan = check_sentence(meant, catalogue, reporter)
        if plan is not None:
            new = ExistingPolicy("", plan, line=text.count("\n", 0, sentence.span[0]) + 1)
            others = [*existing(new.account), *earlier] if callable(existing) else earlier
            check_attributes(meant, plan, catalogue, reporter, kept)
            check_conflicts(plan, meant, others, catalogue, reporter)
            earlier.append(new)
            plans.append((sentence, plan))
    errors = reporter.all(ERROR)
    if errors:
        kind = PolicyConflict if all(one.code == CONFLICT for one in errors) else PolicyErrors
        raise kind(_limited(errors), _limited(reporter.all(WARNING)))
    return [_compiled(text, sentence, plan, reporter) for sentence, plan in plans]


def _limited(problems: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """At most :data:`MOST_SHOWN` problems, then one that counts the rest, so that answers stay small."""
    if len(problems) <= MOST_SHOWN:
        return problems
    rest = len(problems) - MOST_SHOWN
    last = replace(problems[MOST_SHOWN], message=f"{rest} more from here on", near_miss="")
    return (*problems[:MOST_SHOWN], last)


def _compiled(text: str, sentence: Sentence, plan: Plan, reporter: Reporter) -> Compiled:
    start, end = sentence.span
    return Compiled(text[start:end], sentence, str(sentence), plan, reporter.all(WARNING, within=sentence.span))


__all__ = ["Compiled", "ExistingPolicy", "PolicyConflict", "PolicyErrors", "compile_text"]
