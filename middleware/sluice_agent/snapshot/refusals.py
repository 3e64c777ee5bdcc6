"""Which assignments this node refuses, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_agent.snapshot.storage_daemons import StorageDaemons
from sluice_core.describe import BANDWIDTH, FILTER, PROXY, REPLICATION, STORAGE_NODE
from sluice_core.errors import DecodeError
from sluice_core.messages.policies import GROUP, LEVELS, Assignment, Hello
from sluice_core.messages.predicate import compile_predicate
from sluice_core.snapshot.registry import GROUP_LEVELS

#: What is enforced on nodes; what bandwidth there is for whom is decided elsewhere, each second (``credit``).
_KINDS: Final = (FILTER, BANDWIDTH, REPLICATION)


class Capabilities:
    """What the node's workers can do; :meth:`refuse` is the snapshot's judge.

    While no proxy worker is connected (Swift is restarting) nothing is refused for a filter that they
    lack: the workers that come say what they have, and everything is judged again.  Storage daemons
    are remembered.  ``others`` are the nodes that cannot transform objects yet, with what they wait for: as long
    as there is one, no node asks for it.  None: not known yet.
    """

    def __init__(self, storage: StorageDaemons | None = None, others: Mapping[str, str] | None = None) -> None:
        self._workers: dict[str, Hello] = {}
        self._storage = StorageDaemons() if storage is None else storage
        self.others: Mapping[str, str] | None = {} if others is None else others
        #: Whether anything was judged for which other nodes matter.
        self.asked_for_storage = False

    def add(self, hello: Hello) -> bool:
        """A worker is there; True when judgements may differ now.

        :raises PeerError: when a storage daemon's hello cannot be written down
        """
        if hello.disk_file:
            return self._storage.add(hello)
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
        if assignment.kind not in _KINDS:
            return f"`{assignment.kind}` is not available on this node"
        if assignment.target.level not in LEVELS:
            return f"targets of level `{assignment.target.level}` are not available on this node"
        if assignment.target.select == GROUP and assignment.target.level not in GROUP_LEVELS:
            return f"groups of {assignment.target.level}s are not available on this node"
        try:
            compile_predicate(assignment.when)
        except DecodeError as error:
            return str(error)
        return self._missing(assignment) if assignment.kind == FILTER else ""

    def _missing(self, assignment: Assignment) -> str:
        if assignment.verb == "delete":
            return ""
        for one in self._workers.values():
            if one.role == PROXY and assignment.keyword not in one.actions:
                return f"filter `{assignment.keyword}` is not installed in {one.role} worker {one.pid}"
        return self._of_storage(assignment.keyword) if assignment.place == STORAGE_NODE else ""

    def _of_storage(self, keyword: str) -> str:
        self.asked_for_storage = True
        reason = self._storage.refuse(keyword)
        if reason:
            return reason
        if self.others is None:
            return "what the other nodes report was not read yet"
        return "; ".join(f"node `{node}` is {state}" for node, state in sorted(self.others.items()))

    def _fingerprint(self) -> dict[str, frozenset[str]]:
        """Role → what all of its workers can do."""
        found: dict[str, frozenset[str]] = {}
        for one in self._workers.values():
            mine = frozenset(one.actions)
            found[one.role] = found.get(one.role, mine) & mine
        return found
