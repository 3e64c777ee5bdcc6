"""Which assignments this node refuses, and why."""

from __future__ import annotations

from sluice_core.describe import FILTER, PROXY
from sluice_core.errors import DecodeError
from sluice_core.messages import GROUP, LEVELS, Assignment, Hello
from sluice_core.predicate import compile_predicate


class Capabilities:
    """What the connected workers can do; :meth:`refuse` is the snapshot's judge.

    While no worker is connected (Swift is restarting) nothing is refused for a missing filter: the
    workers that come say what they have, and everything is judged again.
    """

    def __init__(self) -> None:
        self._workers: dict[str, Hello] = {}

    def add(self, hello: Hello) -> bool:
        """A worker is there; True when judgements may differ now."""
        before = self._fingerprint()
        self._workers[hello.worker] = hello
        return self._fingerprint() != before

    def remove(self, worker: str) -> bool:
        """A worker is gone; True when judgements may differ now."""
        before = self._fingerprint()
        self._workers.pop(worker, None)
        return self._fingerprint() != before

    def refuse(self, assignment: Assignment) -> str:
        """The reason, or empty when this node takes the assignment."""
        if assignment.kind != FILTER:
            return f"`{assignment.kind}` is not available on this node"
        if assignment.target.level not in LEVELS:
            return f"targets of level `{assignment.target.level}` are not available on this node"
        if assignment.target.select == GROUP and not assignment.member:
            return "groups are not available on this node"  # filed without members it would concern everybody
        try:
            compile_predicate(assignment.when)
        except DecodeError as error:
            return str(error)
        return self._missing(assignment)

    def _missing(self, assignment: Assignment) -> str:
        if assignment.verb == "delete" or not self._workers:
            return ""
        at_proxy = assignment.place == PROXY
        concerned = [one for one in self._workers.values() if (one.role == PROXY) is at_proxy]
        if not concerned and not at_proxy:
            return f"filters at `{assignment.place}` are not available on this node"
        for one in concerned:
            if assignment.keyword not in one.actions:
                return f"filter `{assignment.keyword}` is not installed in {one.role} worker {one.pid}"
        return ""

    def _fingerprint(self) -> dict[str, frozenset[str]]:
        """Role → what all of its workers can do."""
        found: dict[str, frozenset[str]] = {}
        for one in self._workers.values():
            mine = frozenset(one.actions)
            found[one.role] = found.get(one.role, mine) & mine
        return found
