"""Compiles the answers of a controller to assignments, through the same language as sentences of the API.

All actions for one target are one sentence, ``FOR CONTAINER a/c DO SET x WITH …, SET y``, checked against the
catalogue like any other.  Nothing is printed and parsed again, so a name cannot change the sentence.  An answer is
accepted whole or not at all: one invalid assignment raises :class:`ControllerError`.

A check takes a tenth of a millisecond and answers hardly change, so the results of checks are cached.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sluice_actors.controllers.controller_process import ControllerError
from sluice_core.control import Assign
from sluice_core.describe import PLACES
from sluice_core.messages.bandwidth import Rate
from sluice_core.messages.base import MOST_RATE
from sluice_core.messages.policies import CLUSTER, CONTAINER, OBJECT, TENANT, Assignment
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.checks.actions import DELETE, SET
from sluice_dsl.checks.sentence import check_sentence
from sluice_dsl.diagnostics import ERROR, Reporter
from sluice_dsl.plan import assignment_for
from sluice_dsl.syntax.ast import Action, Parameter, Sentence, Target, Word

Assignments = dict[str, Assignment]


class Decision(NamedTuple):
    """The meaning of a controller's answer: id → assignment, and the rates of the methods that it allocates."""

    assignments: Assignments
    rates: tuple[Rate, ...] = ()


_LEVELS: Final = (TENANT, CONTAINER, OBJECT)
#: Sentences that are checked before the event loop may run other tasks.
_PER_STEP: Final = 20
_SHOWN: Final = 3


def policy_id(name: str) -> str:
    """The text in assignments of the controller ``name`` in place of a policy's id."""
    return f"controller:{name}"


class AssignmentCompiler:
    """Compiles the answers of one controller; ``created`` is the time of its upload, in Unix milliseconds."""

    def __init__(self, name: str, created: int) -> None:
        self._policy = policy_id(name)
        self._created = created
        self._catalogue: Catalogue | None = None
        self._known: dict[Any, Assignments] = {}

    async def compile(self, assigns: Sequence[Assign], catalogue: Catalogue) -> Assignments:
        """Id → assignment of the whole answer.

        :raises ControllerError: naming the assignment that is not valid
        """
        if catalogue is not self._catalogue:
            self._catalogue, self._known = catalogue, {}
        by_target: dict[str, list[Assign]] = {}
        for one in assigns:
            _check_shape(one)
            by_target.setdefault(one.target, []).append(one)
        known: dict[Any, Assignments] = {}
        compiled: Assignments = {}
        for count, (target, wanted) in enumerate(by_target.items(), 1):
            key = (target, *map(_key, wanted))
            known[key] = answer = self._known.get(key) or self._sentence(target, wanted, catalogue)
            compiled.update(answer)
            if count % _PER_STEP == 0:
                await asyncio.sleep(0)
        self._known = known
        return compiled

    def _sentence(self, target: str, wanted: Sequence[Assign], catalogue: Catalogue) -> Assignments:
        infos = {one.keyword: catalogue.action(one.keyword) for one in wanted}
        stages = {keyword: info.stage if info else 0 for keyword, info in infos.items()}
        ordered = sorted(wanted, key=lambda one: (stages[one.keyword], one.keyword))
        sentence = Sentence(_target(target), tuple(map(_action, ordered)))
        reporter = Reporter(str(sentence))
        plan = check_sentence(sentence, catalogue, reporter)
        errors = reporter.all(ERROR)
        if errors or plan is None:
            said = "; ".join(one.message for one in errors[:_SHOWN])
            raise ControllerError(f"its answer is not valid, `{_cut(str(sentence))}`: {said}")
        answer: Assignments = {}
        for number in range(len(plan.actions)):
            one = assignment_for(self._policy, plan, number, self._created, True)
            about = hashlib.sha256(f"{target}\0{one.keyword}".encode("utf-8", "surrogateescape")).hexdigest()[:12]
            answer[f"{self._policy}.{about}"] = replace(one, id=f"{self._policy}.{about}")
        return answer


def check_rates(rates: Sequence[Rate], methods: Collection[str]) -> None:
    """Check the shape of ``rates``, which must be of ``methods``.

    :raises ControllerError: naming the rate that is not valid
    """
    for rate in rates:
        texts = (rate.node, rate.account, rate.container)
        if not all(isinstance(value, str) for value in texts) or type(rate.storage_policy) is not int:
            raise ControllerError(
                f"it answers with `{rate}`, expected texts, a method, a rate and a number of a policy"
            )
        if rate.method not in methods:
            said = " or ".join(f"`{name}`" for name in methods) or "none: its `info` allocates nothing"
            raise ControllerError(f"it answers with a rate for `{rate.method}`, expected {said}")
        if type(rate.rate) not in (int, float) or not 0 <= rate.rate <= MOST_RATE:
            raise ControllerError(
                f"it answers with the rate `{rate.rate!r}` of `{rate.account}`, expected bytes per second"
            )


def _check_shape(assign: Assign) -> None:
    """Check the types of the fields, which the wire format does not guarantee."""
    texts = {"target": assign.target, "keyword": assign.keyword, "place": assign.place, "verb": assign.verb}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ControllerError(f"it answers with `{value!r}` as a {name}, expected a text")
    if not isinstance(assign.params, Mapping):
        raise ControllerError(
            f"it answers with `{assign.params!r}` as parameters of `{assign.keyword}`, expected a dictionary"
        )
    for name, given in assign.params.items():
        if not isinstance(name, str) or not isinstance(given, str | int | float):
            raise ControllerError(
                f"it answers with `{name!r}` = `{given!r}` for `{assign.keyword}`, expected a text or a number"
            )
    if assign.verb not in (SET, DELETE):
        raise ControllerError(
            f"it answers with the verb `{assign.verb}` for `{assign.keyword}`, expected `set` or `delete`"
        )
    if assign.place not in ("", *PLACES):
        raise ControllerError(
            f"it answers with the place `{assign.place}` for `{assign.keyword}`, expected {' or '.join(PLACES)}"
        )


def _key(assign: Assign) -> tuple[Any, ...]:
    # 1, 1.0 and True are equal, but a parameter distinguishes them.
    params = sorted((name, type(value).__name__, value) for name, value in assign.params.items())
    return (assign.keyword, assign.verb, assign.place, *params)


def _target(path: str) -> Target:
    if not path:
        return Target(CLUSTER, "name")
    return Target(_LEVELS[min(path.count("/"), 2)], "name", Word(path))


def _action(one: Assign) -> Action:
    params = tuple(Parameter(Word(name.lower()), Word(_written(value))) for name, value in sorted(one.params.items()))
    return Action(one.verb, Word(one.keyword.lower()), params, one.place)


def _written(value: Any) -> str:
    """A parameter in the form that a sentence has."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
