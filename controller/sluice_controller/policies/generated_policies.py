"""Policies whose sentences the API writes itself: those of stereotypes, deployments and bandwidth values.

A caller gives the wanted sentences, which replace the policies that the same origin wrote for the same target.
:func:`plan_changes` computes the difference, and :func:`commit` writes it as one atomic change.

The id of a policy is a hash of its origin, text and plan.  Two concurrent requests for the same policies make the
same ids; the store accepts the first, and the second then finds nothing left to change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice_controller.catalog import reference_guards
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.policy_cache import CacheContents, CachedPolicy
from sluice_controller.policies.services import Authorize, allow_all, new_policy, static_puts
from sluice_core.messages.policies import Entry, Policy, Target
from sluice_core.store.records import Draft
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.compile import Compiled, ExistingPolicy, compile_text
from sluice_dsl.diagnostics import Diagnostic
from sluice_dsl.syntax import ast


@dataclass(frozen=True, slots=True)
class PolicyChanges:
    """The difference to the wanted sentences: policies to keep (``stay``), to ``drop`` and to create (``new``)."""

    origin: str
    stay: tuple[CachedPolicy, ...]
    drop: tuple[CachedPolicy, ...]
    new: tuple[Compiled, ...]


@dataclass(frozen=True, slots=True)
class GeneratedPolicies:
    """The resulting policies, the epoch of the newest change, and the warnings about new sentences."""

    policies: tuple[Policy, ...]
    epoch: int
    changed: bool
    warnings: tuple[Diagnostic, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """The fields of an answer besides those of the policy."""
        return {"changed": self.changed, "warnings": [one.to_data() for one in self.warnings]}


def write_sentence(target: Target, keyword: str, params: Iterable[tuple[str, str]], place: str) -> str:
    """The sentence that sets ``keyword`` for ``target``, with the target's label; ``place`` may be empty."""
    written = tuple(ast.Parameter(ast.Word(name), ast.Word(value)) for name, value in params)
    action = ast.Action("set", ast.Word(keyword), written, place)
    name = ast.Word(target.label or target.name)
    return str(ast.Sentence(ast.Target(target.level, target.select, name), (action,)))


def plan_changes(
    text: str,
    origin: str,
    old: Sequence[CachedPolicy],
    others: Sequence[ExistingPolicy],
    catalogue: Catalogue,
    awake: bool = False,
) -> PolicyChanges:
    """The changes that replace the policies ``old`` by the sentences of ``text``, checked against ``others``.

    :param awake: a disabled policy is replaced by an enabled one instead of kept

    :raises PolicyErrors: all errors in it
    """
    wanted = compile_text(text, catalogue, others) if text else []
    left = list(old)
    new = []
    for sentence in wanted:
        alike = (each for each in left if each.policy.text == sentence.text and each.plan == sentence.plan)
        same = next((each for each in alike if each.policy.enabled or not awake), None)
        if same is None:
            new.append(sentence)
        else:
            left.remove(same)
    return PolicyChanges(origin, tuple(one for one in old if one not in left), tuple(left), tuple(new))


def policies_except(contents: CacheContents, mine: Iterable[CachedPolicy]) -> list[ExistingPolicy]:
    """All policies except some, in the form for the compiler."""
    ids = {one.policy.id for one in mine}
    return [one for one in contents.existing if one.id not in ids]


def commit(
    backend: Backend,
    settled: Sequence[PolicyChanges],
    by: str,
    entries: tuple[Entry, ...] = (),
    expect: dict[str, int] | None = None,
    allow: Authorize = allow_all,
    contents: CacheContents | None = None,
) -> GeneratedPolicies:
    """Write all ``settled`` differences as one atomic change; write nothing if there are none.

    :param allow: is called with all plans concerned before anything is written
    :param contents: the state that the new sentences were compiled against

    :raises Conflict: when a dependency changed meanwhile
    """
    standing = [one.plan for each in settled for one in (*each.stay, *each.drop)]
    allow([*standing, *(one.plan for each in settled for one in each.new)])
    now = int(backend.now() * 1000)
    drops = [one for each in settled for one in each.drop]
    compiled = [(each.origin, one) for each in settled for one in each.new]
    # A millisecond apart, so that the order of the text is the order of their age.
    gone = {one.policy.id: one.version for one in drops}
    made = [_policy(one, origin, now + number, by, gone) for number, (origin, one) in enumerate(compiled)]
    stay = [one.policy for each in settled for one in each.stay]
    if not (drops or made or entries):
        return GeneratedPolicies(tuple(stay), backend.store.head().epoch, False)
    versions = {f"policy/{policy}": version for policy, version in gone.items()}
    if contents is not None:
        versions |= reference_guards.referenced_versions(backend, contents, (one for _, one in compiled))
    done = backend.store.commit(
        Draft(
            by,
            puts=static_puts((policy, one.plan) for policy, (_, one) in zip(made, compiled, strict=True)),
            policies=tuple(made),
            policy_drops=tuple(one.policy.id for one in drops),
            entries=entries,
            expect={**versions, **{f"policy/{one.id}": 0 for one in made}, **(expect or {})},
        )
    )
    doubts = tuple(problem for _, one in compiled for problem in one.warnings)
    return GeneratedPolicies((*stay, *made), done.epoch, True, doubts)


def _policy(sentence: Compiled, origin: str, created: int, by: str, gone: Mapping[str, int]) -> Policy:
    plan = sentence.plan.to_data()
    name = _id(origin, sentence.text, plan)
    if name in gone:  # a change applies its drops last: a dropped policy must not have the id of a new one
        name = _id(origin, sentence.text, plan, gone[name])
    return new_policy(sentence, name, created, by, origin)


def _id(origin: str, text: str, plan: dict[str, Any], salt: int = 0) -> str:
    said = json.dumps([origin, text, plan, salt], sort_keys=True).encode()
    return hashlib.sha256(said).hexdigest()[:12]
