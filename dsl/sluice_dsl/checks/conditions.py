"""``WHEN``: the nodes of a condition become the plan's negation normal form.

NOT is folded into the operators of metrics, OBJECT_SIZE and OBJECT_COMPRESSIBILITY; before a type, a tag or a method it
stays on that leaf.  An attribute without a value (a silent metric, the size of a chunked PUT) makes
its clause unknown and so satisfies neither the clause nor its negation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from sluice_core.describe import REQUEST_ATTRIBUTES, MetricInfo
from sluice_core.messages.policies import CLUSTER, Target
from sluice_core.messages.predicate import all_of, any_of
from sluice_core.metrics.node_metrics import NODE, PLACE_LEVELS
from sluice_dsl.catalogue.base import Catalogue
from sluice_dsl.diagnostics import UNKNOWN, VALUE, Reporter, UnknownWord, join_words
from sluice_dsl.plan import Condition, Reading
from sluice_dsl.syntax import ast
from sluice_dsl.syntax.units import METRIC_QUANTITIES, UnitError, read_quantity

#: HTTP methods of object requests.
METHODS: Final = ("GET", "HEAD", "PUT", "POST", "DELETE", "COPY", "OPTIONS")

_OPPOSITE: Final = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_ATTRIBUTES: Final = {one.name: one for one in REQUEST_ATTRIBUTES}
_pattern = re.compile(r"[\w+-]+|[\w.+-]+/(?:\*|[\w.+-]+)")


def type_pattern(text: str) -> str:
    """Return ``text``, an extension or a media type, in the form that types of objects are compared with."""
    return text.lower().removeprefix(".")


def is_type_pattern(pattern: str) -> bool:
    """Whether it is an extension, a media type or a pattern of media types (``image/*``)."""
    return _pattern.fullmatch(pattern) is not None


class ConditionCompiler:
    """Compiles the condition of one sentence; ``metrics`` and ``readings`` are collected from it.

    ``target`` is None when the sentence's own target has an error.
    """

    def __init__(self, catalogue: Catalogue, target: Target | None, reporter: Reporter) -> None:
        self.metrics: dict[str, MetricInfo] = {}
        self.readings: set[Reading] = set()
        self._catalogue = catalogue
        self._target = target
        self._reporter = reporter
        self._leaves: Mapping[str, Callable[[ast.Clause, bool], Condition]] = {
            "size": self._size,
            "compressibility": self._compressibility,
            "type": self._type,
            "tag": self._tag,
            "method": self._method,
        }

    def compile(self, node: ast.Condition, negated: bool = False) -> Condition:
        """The normal form of ``node``; clauses with errors are reported and count as true."""
        if isinstance(node, ast.Not):
            return self.compile(node.part, not negated)
        if isinstance(node, ast.Clause):
            return self._clause(node, negated)
        parts = [self.compile(part, negated) for part in node.parts]
        # De Morgan: a negated AND is the OR of the negated parts
        return all_of(*parts) if isinstance(node, ast.And) is not negated else any_of(*parts)

    def _clause(self, clause: ast.Clause, negated: bool) -> Condition:
        name = clause.subject.text
        attribute = _ATTRIBUTES.get(name)
        if attribute is not None:
            if clause.at is not None:
                self._reporter.error(f"`{name}` is a property of a request, AT is for metrics", clause.at.span)
            return self._leaves[attribute.type](clause, negated)
        alias = self._catalogue.metrics_by_alias.get(name)
        metric = self._catalogue.metric(alias.metric if alias else name)
        if metric is not None and alias is not None and not self._is_at(alias.level):
            message = f"`{name}` is `{metric.name}` of a {alias.level}, expected `{metric.name}` for another target"
            self._reporter.error(message, clause.subject.span)
            return True
        if metric is None:
            self._unknown(clause.subject)
            return True
        reading = self._reading(metric, clause)
        value = self._quantity(clause.value, METRIC_QUANTITIES[metric.unit])
        self.metrics[metric.name] = metric
        self.readings.add(reading)
        where = ["metric_at", *reading] if reading.level else ["metric", metric.name]
        return [*where, _operator(clause, negated), value]

    def _unknown(self, subject: ast.Word) -> None:
        aliases = [alias for metric in self._catalogue.metrics.values() for alias in metric.aliases]
        known = [*self._catalogue.metrics, *aliases, *self._catalogue.metrics_by_alias, *_ATTRIBUTES]
        message = f"unknown metric or request attribute `{subject.text}`"
        self._reporter.error(message, subject.span, UnknownWord(subject.text, known), UNKNOWN)

    def _is_at(self, level: str) -> bool:
        return self._target is None or level in ("", self._target.level, *PLACE_LEVELS)

    def _reading(self, metric: MetricInfo, clause: ast.Clause) -> Reading:
        """Return where the metric is read: at the target, or at a node, storage policy or pool for every target."""
        place = next((level for level in PLACE_LEVELS if level in metric.granularities), "")
        measured = join_words(metric.granularities, "and")
        if clause.at is not None:
            if not place:
                message = f"`{metric.name}` is measured per {measured}, AT names a node, storage policy or pool"
                self._reporter.error(message, clause.at.span)
            elif not clause.at.text:
                expected = f"expected the name of a {place.replace('_', ' ')}"
                self._reporter.error(f"{expected}, got an empty one", clause.at.span)
            elif place == NODE:
                self._check_node(clause.at)
            return Reading(metric.name, place, clause.at.text)
        if self._target is None or self._target.level in metric.granularities:
            return Reading(metric.name)
        if not place:
            message = f"`{metric.name}` is measured per {measured}, not per {self._target.level}"
            self._reporter.error(message, clause.subject.span)
        return Reading(metric.name, CLUSTER)

    def _check_node(self, at: ast.Word) -> None:
        """Warn of an unknown node, which may be added later."""
        known = self._catalogue.known_nodes()
        if known and at.text not in known:
            self._reporter.warn(f"there is no node `{at.text}` now", at.span, UnknownWord(at.text, known), UNKNOWN)

    def _quantity(self, value: ast.Word, quantity: str) -> float | int:
        try:
            return read_quantity(value.text, quantity)
        except UnitError as error:
            self._reporter.error(str(error), value.span, error.unknown, VALUE)
            return 0

    def _size(self, clause: ast.Clause, negated: bool) -> Condition:
        return ["size", _operator(clause, negated), self._quantity(clause.value, "size")]

    def _compressibility(self, clause: ast.Clause, negated: bool) -> Condition:
        return ["compressibility", _operator(clause, negated), self._quantity(clause.value, "ratio")]

    def _type(self, clause: ast.Clause, negated: bool) -> Condition:
        return self._equality(clause, negated, "type", self._patterns(clause.value))

    def _patterns(self, value: ast.Word) -> list[str]:
        terms = self._catalogue.terms
        if value.text.upper() in terms:
            return list(terms[value.text.upper()])
        pattern = type_pattern(value.text)
        if not is_type_pattern(pattern):
            expected = "expected an extension, a media type or a term such as pdf, text/plain, image/* or DOCS"
            self._reporter.error(f"{expected}, got `{value.text}`", value.span, code=VALUE)
        elif not any(pattern in patterns for patterns in terms.values()):
            message = f"`{value.text}` is taken as a file extension"
            self._reporter.warn_if_near(message, value.span, UnknownWord(pattern, terms), UNKNOWN)
        return [pattern]

    def _tag(self, clause: ast.Clause, negated: bool) -> Condition:
        if not clause.value.text or "," in clause.value.text:
            self._reporter.error("expected one tag, without commas", clause.value.span, code=VALUE)
        return self._equality(clause, negated, "tag", [clause.value.text.lower()])

    def _method(self, clause: ast.Clause, negated: bool) -> Condition:
        name = clause.value.text.upper()
        if name not in METHODS:
            expected = f"expected an HTTP method ({join_words(METHODS)}), got `{clause.value.text}`"
            self._reporter.error(expected, clause.value.span, UnknownWord(name, METHODS), VALUE)
        return self._equality(clause, negated, "method", [name])

    def _equality(self, clause: ast.Clause, negated: bool, word: str, values: list[str]) -> Condition:
        if clause.op not in ("==", "!="):
            self._reporter.error(
                f"`{clause.subject.text}` knows only = and !=, not {clause.op}", clause.span, code=VALUE
            )
        leaf: list[Any] = [word, values]
        return ["not", leaf] if (clause.op == "!=") is not negated else leaf


def _operator(clause: ast.Clause, negated: bool) -> str:
    return _OPPOSITE[clause.op] if negated else clause.op
