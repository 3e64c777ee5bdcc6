"""Which assignments this node refuses, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sluice_agent.snapshot.storage_daemons import StorageDaemons
from sluice_core.describe import (
    BANDWIDTH,
    FILTER,
    KONNECTOR,
    MOTIF,
    OBJECTS,
    PROXY,
    REPLICATION,
    SERVICE,
    STORAGE_NODE,
    THROTTLE,
    TIER,
)
from sluice_core.errors import DecodeError
from sluice_core.messages.nodes import Hello
from sluice_core.messages.policies import GROUP, LEVELS, Assignment
from sluice_core.messages.predicate import compile_predicate
from sluice_core.messages.uploads import Upload
from sluice_core.snapshot.records import MEMBER_LEVELS
from sluice_motif_control.announcements import MOTIF_STATES, READY
from sluice_volumes.actions import stack_filter

#: Kinds of assignments that nodes accept.  Actor hosts call services and change tiers: nodes do nothing for them.
_KINDS: Final = (FILTER, BANDWIDTH, REPLICATION, MOTIF, SERVICE, THROTTLE, TIER)


class Capabilities:
    """What the node's workers can do; :meth:`refuse` decides for the snapshot.

    While no proxy worker is connected (Swift restarts) no assignment is refused for a missing filter: new workers
    send their filters, and all assignments are checked again.  Storage daemons are remembered.  A node without a
    konnector has no volumes and accepts assignments for volumes.  ``unready_nodes`` maps each node that cannot
    transform objects on disks yet to its state: while there is one, all nodes refuse such assignments.  None: not known
    yet.
    """

    def __init__(self, storage: StorageDaemons) -> None:
        self._workers: dict[str, Hello] = {}
        self._storage = storage
        self.unready_nodes: Mapping[str, str] | None = {}
        #: Whether any assignment depends on the state of other nodes.
        self.needs_storage_state = False

    def add(self, hello: Hello) -> bool:
        """Add a worker.

        :return: whether other assignments may be refused now

        :raises PeerError: when a storage daemon's hello cannot be saved
        """
        if hello.disk_file:
            return self._storage.add(hello)
        before = self._fingerprint()
        self._workers[hello.worker] = hello
        return self._fingerprint() != before

    def remove(self, worker: str) -> bool:
        """Remove a worker.

        :return: whether other assignments may be refused now
        """
        before = self._fingerprint()
        self._workers.pop(worker, None)
        return self._fingerprint() != before

    def missing_plugins(self) -> dict[str, str]:
        """Installed plugin that a process of this node runs without → the role of the process and the reason."""
        return {
            name: f"{hello.role}: {reason}"
            for hello in (*self._storage.hellos, *self._workers.values())
            for name, reason in hello.plugins.items()
        }

    def has_konnector(self) -> bool:
        """Whether volumes are used on this node."""
        return any(one.role == KONNECTOR for one in self._workers.values())

    def konnector_url(self) -> str:
        """Where the konnector of this node is called; empty without one."""
        return next((one.url for one in self._workers.values() if one.role == KONNECTOR), "")

    def volume_faults(self) -> dict[str, str]:
        """Id of each volume that is broken at the konnector of this node → the reason."""
        return {volume: reason for one in self._workers.values() for volume, reason in one.volume_faults.items()}

    def unconfirmed_volumes(self) -> dict[str, str]:
        """Volume that the konnector of this node took over → its attachment, which is to be confirmed."""
        return {key: value for one in self._workers.values() for key, value in one.unconfirmed_volumes.items()}

    def motifs(self) -> str:
        """As of ``NodeReport.motifs``."""
        without = sorted(one.pid for one in self._workers.values() if one.role == PROXY and one.motifs < MOTIF_STATES)
        return f"waiting for motifs in proxy workers {', '.join(map(str, without))}" if without else READY

    def refused_code(self, uploads: Iterable[Upload]) -> dict[str, str]:
        """``upload/<key>`` → why the konnector of this node does not use its newest revision any more."""
        reasons = {digest: reason for one in self._workers.values() for digest, reason in one.refused_code.items()}
        return {f"upload/{one.key}": reasons[one.sha256] for one in uploads if one.sha256 in reasons}

    def refuse(self, assignment: Assignment) -> str:
        """Why this node refuses the assignment; empty when it accepts it."""
        if assignment.kind not in _KINDS:
            return f"`{assignment.kind}` is not available on this node"
        if assignment.target.level not in LEVELS:
            return f"targets of level `{assignment.target.level}` are not available on this node"
        if assignment.target.select == GROUP and assignment.target.level not in MEMBER_LEVELS.values():
            return f"groups of {assignment.target.level}s are not available on this node"
        try:
            compile_predicate(assignment.when)
        except DecodeError as error:
            return str(error)
        if assignment.verb == "delete":
            return ""
        # an assignment for objects and volumes is accepted without its volume filter: the attach is refused instead
        if not assignment.concerns(OBJECTS):
            return self._missing_at_konnector(assignment)
        if assignment.kind == MOTIF and self.motifs() != READY:
            return f"the node is {self.motifs()}"
        return self._missing(assignment) if assignment.kind == FILTER else ""

    def _missing_at_konnector(self, assignment: Assignment) -> str:
        if assignment.kind not in (FILTER, THROTTLE, BANDWIDTH):
            return ""
        wanted = stack_filter(assignment.keyword)
        for worker in self._workers.values():
            if worker.role == KONNECTOR and wanted not in worker.actions:
                return f"`{assignment.keyword}` is not available for volumes in konnector {worker.pid}"
        return ""

    def _missing(self, assignment: Assignment) -> str:
        for worker in self._workers.values():
            if worker.role == PROXY and assignment.keyword not in worker.actions:
                return f"filter `{assignment.keyword}` is not installed in {worker.role} worker {worker.pid}"
        return self._storage_refusal(assignment.keyword) if assignment.place == STORAGE_NODE else ""

    def _storage_refusal(self, keyword: str) -> str:
        self.needs_storage_state = True
        reason = self._storage.refuse(keyword)
        if reason:
            return reason
        if self.unready_nodes is None:
            return "the reports of the other nodes were not read yet"
        return "; ".join(f"node `{node}` is {state}" for node, state in sorted(self.unready_nodes.items()))

    def _fingerprint(self) -> dict[str, frozenset[str]]:
        """Role → the filters, and the versions of contracted objects, that all workers of the role have."""
        common: dict[str, frozenset[str]] = {}
        for worker in self._workers.values():
            actions = frozenset((*worker.actions, f"{MOTIF} {worker.motifs}"))
            common[worker.role] = common.get(worker.role, actions) & actions
        return common
