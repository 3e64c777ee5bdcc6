"""Every Redis key of Sluice, each with its type and its reason.

All keys of one cluster share a prefix, so that two clusters can use one Redis.
"""

from __future__ import annotations

from dataclasses import dataclass


class _Key:
    """The key ``<prefix>:<name of the attribute>``."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __set_name__(self, owner: type[Keys], name: str) -> None:
        self._name = name

    def __get__(self, keys: Keys, owner: type[Keys]) -> str:
        return f"{keys.prefix}:{self._name}"


@dataclass(frozen=True, slots=True)
class Keys:
    """The Redis keys below ``prefix``."""

    prefix: str = "sluice"

    history = _Key("String: id of the current history; a wiped Redis has none, so agents notice.")
    epoch = _Key("Integer: number of changes committed in this history.")
    adopted = _Key("String ``history:epoch``: an operator told agents to take this history as it is.")
    adoptions = _Key("List of JSON, newest first, 100 kept: who adopted which history when.")
    assignments = _Key("Hash assignment id → JSON: what agents put into their snapshots.")
    policies = _Key("Hash policy id → JSON: sentence and plan, the controller's metadata store.")
    uploads = _Key("Hash keyword → JSON: filters registered at run time; their code lies in Swift.")
    registry = _Key("Hash ``kind/name`` → JSON: groups and their members, terms, aliases and the like.")
    states = _Key("Hash policy id → JSON: what a restarted actor continues from.")
    versions = _Key("Hash ``kind/id`` → integer: what an expected version is compared with.")
    epochs = _Key("Hash policy id → epoch of the last change of its assignments: enforced from there on.")
    changes = _Key("Stream: one entry per change, its id is ``<epoch>-0``, trimmed at a length.")
    past = _Key("Stream: what each change of policies, uploads and the registry replaced, ids ``<epoch>-<part>``.")
    nodes = _Key("Hash node id → JSON: epoch applied (the ACK), refusals, health.")
    acks = _Key("Pub/sub channel: ``node epoch`` after each ACK, for whoever waits for a roll-out.")
    watched = _Key("Sorted set policy id → unix time until which somebody looks at its metric values.")
    observed = _Key("Hash policy id → JSON: last metric values of the watched policies.")
    hosts = _Key("Hash actor host id → JSON: its report, for ``/health``.")
    owners = _Key("Hash slot → ``<term> <host>``: who acts for the policies in it; field ``*`` counts the terms.")
    services = _Key("Hash assignment id → JSON: what the service of a third party answered to the call about it.")
    events = _Key("Stream: what went wrong anywhere, in the order in which it was logged, trimmed at a length.")
    event_sources = _Key("Hash source of events → JSON: what it may still log, and how many were left out.")
    node_problems = _Key("Hash node → JSON: what is wrong with it and was logged, for whoever watches nodes next.")
    accounts = _Key("Sorted set of accounts, all of one score: found by agents that measure what is stored.")
    account_requests = _Key("Sorted set name → unix time: who waits until all accounts of the cluster are in the list.")
    account_reports = _Key("Hash node id → JSON: which requests its accounts answer, and which devices were read.")
    account_readers = _Key("Sorted set node id → unix time at which its agent said that it reads its accounts.")
    rewrites = _Key("Hash job id → JSON: rewrites of stored objects, as they were ordered.")
    rewrite_orders = _Key("Hash assignment id → JSON: the rewrites that its EXISTING ordered, and what it said then.")
    volumes = _Key("Hash volume id → JSON: what Sluice itself knows of a volume, its fixed filters above all.")
    volume_operations = _Key("Hash operation id → JSON: operations on volumes, finished or undone after a crash.")
    pools = _Key("Hash name of a pool of Cinder → JSON: capacity and capabilities as it reported them last.")
    pool_calibrations = _Key("Hash name of a pool → JSON: what was measured of it.")
    volume_report = _Key("String of JSON: what volumes did lately, for Prometheus; expires when nobody measures.")
    tiers = _Key("Hash name → JSON: classes of volumes, each a volume type of Cinder.")
    metric_series = _Key("Hash metric, level and path → JSON: the series of the history of metrics.")
    motif_daemons = _Key("Hash name → JSON: daemons of motifs, their templates.")
    motif_daemons_seen = _Key("Sorted set name → unix time: when each daemon of motifs said that it runs.")
    motif_calls = _Key("List of ``<until> <JSON>``, bounded: calls that wait for a daemon of motifs.")
    motif_operations = _Key("Hash id → JSON: expansions of everything, as far as they are.")
    motif_operation_leases = _Key("Sorted set id → unix time until which a daemon works at the operation.")
    motif_operation_owners = _Key("Hash id → the daemon that works at the operation.")
    motif_activity = _Key(
        "Stream, trimmed at a length: opens and changes of objects with motifs, from daemon to daemon."
    )
    motif_spaces = _Key("Sorted set path → unix time: when the owner of each space has reported, bounded.")
    motif_space_reports = _Key("Hash path → JSON: what the owners of spaces have reported.")
    motif_leases = _Key("Hash: run of Redis, since when it is known, last token; what leases of motifs are granted by.")
    motif_items = _Key("Sorted set of objects that have motifs, all of one score: what a scan would find.")
    motif_scan = _Key("String: there once a scan has found all objects with motifs, and gone when Redis has lost them.")
    bandwidth = _Key("String of JSON: what was measured and assigned in the last second; expires when nobody divides.")

    def promises(self, digest: str) -> str:
        """String of JSON: how promises are shown of which nothing moves; expires with the last that names it."""
        return f"{self.prefix}:promises:{digest}"

    def rewrite(self, job_id: str, part: str) -> str:
        """A ``part`` of what is known of a rewrite.

        ``units`` (list: what is to do), ``leases`` (sorted set: unit → unix time at which its claim ends), ``markers``
        (hash unit → JSON: last name that is done, number of the claim), ``progress`` (hash of counters), ``pace``
        (string: unix time up to which the rate is reserved), ``failures`` (list of JSON, newest first).
        """
        return f"{self.prefix}:rewrite:{job_id}:{part}"

    def motif_calls_taken(self, daemon: str) -> str:
        """List: the calls that a daemon of motifs has in hand."""
        return f"{self.prefix}:motif_calls_taken:{daemon}"

    def motif_answer(self, call_id: str) -> str:
        """List of one JSON: the answer to a call; expires."""
        return f"{self.prefix}:motif_answer:{call_id}"

    def motif_lease(self, item: str) -> str:
        """String: token of the lease of an object with motifs; expires with it."""
        return f"{self.prefix}:motif_lease:{item}"

    def motif_derived(self, source: str) -> str:
        """Set of objects that are derived from the object ``source``, or were."""
        return f"{self.prefix}:motif_derived:{source}"

    def metric_points(self, step: int, series: str) -> str:
        """String, a ring: the packed points of ``step`` seconds of one series of the history of metrics."""
        return f"{self.prefix}:metric_points:{step}:{series}"

    def metric_clock(self, step: int) -> str:
        """String, a ring: the unix times whose points of ``step`` seconds were written, for all series."""
        return f"{self.prefix}:metric_clock:{step}"
