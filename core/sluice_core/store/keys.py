"""Every Redis key, AMQP name and snapshot key of Sluice, each with its reason.

All keys of one cluster share a prefix, so that two clusters can use one Redis.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Keys:
    """The Redis keys below ``prefix``."""

    prefix: str = "sluice"

    @property
    def history(self) -> str:
        """String: id of the current history; a wiped Redis has none, so agents notice."""
        return f"{self.prefix}:history"

    @property
    def epoch(self) -> str:
        """Integer: number of changes committed in this history."""
        return f"{self.prefix}:epoch"

    @property
    def adopted(self) -> str:
        """String ``history:epoch``: an operator told agents to take this history as it is."""
        return f"{self.prefix}:adopted"

    @property
    def adoptions(self) -> str:
        """List of JSON, newest first, 100 kept: who adopted which history when."""
        return f"{self.prefix}:adoptions"

    @property
    def assignments(self) -> str:
        """Hash assignment id → JSON: what agents put into their snapshots."""
        return f"{self.prefix}:assignments"

    @property
    def policies(self) -> str:
        """Hash policy id → JSON: sentence and plan, the controller's metadata store."""
        return f"{self.prefix}:policies"

    @property
    def uploads(self) -> str:
        """Hash keyword → JSON: filters registered at run time; their code lies in Swift."""
        return f"{self.prefix}:uploads"

    @property
    def registry(self) -> str:
        """Hash ``kind/name`` → JSON: groups and their members, terms, aliases, and what else administrators name."""
        return f"{self.prefix}:registry"

    @property
    def states(self) -> str:
        """Hash policy id → JSON: what a restarted actor continues from."""
        return f"{self.prefix}:states"

    @property
    def versions(self) -> str:
        """Hash ``kind/id`` → integer: what an expected version is compared with."""
        return f"{self.prefix}:versions"

    @property
    def epochs(self) -> str:
        """Hash policy id → epoch of the last change of its assignments: enforced from there on."""
        return f"{self.prefix}:epochs"

    @property
    def changes(self) -> str:
        """Stream: one entry per change, its id is ``<epoch>-0``, trimmed at a length."""
        return f"{self.prefix}:changes"

    @property
    def past(self) -> str:
        """Stream: what each change of policies, uploads and the registry replaced, ids ``<epoch>-<part>``."""
        return f"{self.prefix}:past"

    @property
    def nodes(self) -> str:
        """Hash node id → JSON: epoch applied (the ACK), refusals, health."""
        return f"{self.prefix}:nodes"

    @property
    def acks(self) -> str:
        """Pub/sub channel: ``node epoch`` after each ACK, for whoever waits for a roll-out."""
        return f"{self.prefix}:acks"

    @property
    def watched(self) -> str:
        """Sorted set policy id → unix time until which somebody looks at its metric values."""
        return f"{self.prefix}:watched"

    @property
    def observed(self) -> str:
        """Hash policy id → JSON: last metric values of the watched policies."""
        return f"{self.prefix}:observed"

    @property
    def hosts(self) -> str:
        """Hash actor host id → JSON: its report, for ``/health``."""
        return f"{self.prefix}:hosts"

    @property
    def owners(self) -> str:
        """Hash slot → ``<term> <host>``: who acts for the policies in it; field ``*`` counts the terms."""
        return f"{self.prefix}:owners"

    @property
    def bandwidth(self) -> str:
        """String of JSON: what was measured and assigned in the last second; expires when nobody divides."""
        return f"{self.prefix}:bandwidth"

    def promises(self, digest: str) -> str:
        """String of JSON: how promises are shown of which nothing moves; expires with the last that names it."""
        return f"{self.prefix}:promises:{digest}"

    def all(self) -> dict[str, str]:
        """Name → key of every key, for documentation and tests."""
        return {name: getattr(self, name) for name, member in vars(type(self)).items() if isinstance(member, property)}


#: Topic exchange that agents publish metric batches to.
METRICS_EXCHANGE: Final = "sluice.metrics"
#: Topic exchange on which actor hosts ask each other for values, and push them.
VALUES_EXCHANGE: Final = "sluice.values"
#: Topic exchange on which agents tell each other of writes to objects, for the caches of their nodes.
WRITES_EXCHANGE: Final = "sluice.writes"

#: Topic exchange on which agents tell what moves, and one actor host what may.
BANDWIDTH_EXCHANGE: Final = "sluice.bandwidth"


def load_routing_key(node: str) -> str:
    """Routing key of what ``node`` tells of its load: ``load.<node>``; whoever divides binds ``load.#``."""
    return f"load.{node.replace('.', '_')}"


def shares_routing_key(node: str) -> str:
    """Routing key of what is for ``node``: ``shares.<node>``."""
    return f"shares.{node.replace('.', '_')}"


def writes_routing_key(node: str) -> str:
    """Routing key of what ``node`` tells: ``writes.<node>``; everybody binds ``writes.#``."""
    return f"writes.{node.replace('.', '_')}"


def values_routing_key(host: str) -> str:
    """Routing key of what is for one actor host: ``values.<host>``; ``values.all`` is for every one."""
    return f"values.{host.replace('.', '_')}"


def metric_routing_key(metric: str, node: str) -> str:
    """Routing key of one batch: ``metric.<METRIC>.<node>``; dots in names become ``_``.

    Bind ``metric.PUTS_SEC.*`` for one metric of all nodes, ``metric.*.node1`` for one
    node, ``metric.#`` for everything.
    """
    return f"metric.{metric.replace('.', '_')}.{node.replace('.', '_')}"


#: LMDB refuses keys of more than 511 bytes; Swift's names are longer, so long ones are hashed.
_LMDB_KEY_LIMIT: Final = 500
_PREFIXES: Final = {"tenant": b"t/", "container": b"c/", "object": b"o/"}
#: Snapshot record of everything that is not about one named target.
EVERYTHING_KEY: Final = b"*"
#: Prefix of the snapshot's index, assignment id → where it is filed.
SNAPSHOT_INDEX_PREFIX: Final = b"i/"
#: Prefix of the snapshot's records of groups' assignments; members' own records name the groups to read.
SNAPSHOT_GROUP_PREFIX: Final = b"g/"
#: Prefix of the storage policies of accounts' new containers.
SNAPSHOT_PLACEMENT_PREFIX: Final = b"p/"
#: Snapshot record of which parts of the registry are kept, so that a newer agent knows whether it must load.
SNAPSHOT_REGISTRY_KEY: Final = b"\x00registry"
#: Snapshot record of the filters registered at run time.
SNAPSHOT_UPLOADS_KEY: Final = b"\x00uploads"
#: Snapshot record of its id, history and epoch.
SNAPSHOT_META_KEY: Final = b"\x00meta"


def snapshot_key(level: str, path: str) -> bytes:
    """Snapshot key of ``path`` (``account[/container[/object]]``) at ``level``."""
    return _fitted(_PREFIXES[level] + path.encode("utf-8", "surrogateescape"))


def snapshot_keys(account: str, container: str, obj: str) -> tuple[bytes, bytes, bytes, bytes]:
    """The keys of all records that may concern one object, narrowest first; made on each request."""
    longest = f"o/{account}/{container}/{obj}".encode("utf-8", "surrogateescape")
    if len(longest) > _LMDB_KEY_LIMIT:
        path = f"{account}/{container}"
        return (
            snapshot_key("object", f"{path}/{obj}"),
            snapshot_key("container", path),
            snapshot_key("tenant", account),
            EVERYTHING_KEY,
        )
    return (
        longest,
        f"c/{account}/{container}".encode("utf-8", "surrogateescape"),
        f"t/{account}".encode("utf-8", "surrogateescape"),
        EVERYTHING_KEY,
    )


def snapshot_index_key(assignment: str) -> bytes:
    """Snapshot key of where an assignment is filed, so that a drop finds it."""
    return _fitted(SNAPSHOT_INDEX_PREFIX + assignment.encode("utf-8", "surrogateescape"))


def snapshot_group_key(level: str, name: str) -> bytes:
    """Snapshot key of the assignments of the group ``name`` of tenants or containers."""
    return _fitted(SNAPSHOT_GROUP_PREFIX + f"{level}/{name}".encode("utf-8", "surrogateescape"))


def snapshot_placement_key(account: str) -> bytes:
    """Snapshot key of the storage policy of the account's new containers."""
    return _fitted(SNAPSHOT_PLACEMENT_PREFIX + account.encode("utf-8", "surrogateescape"))


def _fitted(raw: bytes) -> bytes:
    if len(raw) <= _LMDB_KEY_LIMIT:
        return raw
    return raw[:2] + b"#" + hashlib.blake2b(raw, digest_size=32).digest()
