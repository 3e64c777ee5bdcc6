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
    adopted = _Key("String ``history:epoch``: an operator ordered agents to accept this history.")
    adoptions = _Key("List of JSON, newest first, 100 kept: adopted histories, with user and time.")
    assignments = _Key("Hash assignment id → JSON: the assignments in agents' snapshots.")
    policies = _Key("Hash policy id → JSON: sentence and plan, the controller's metadata store.")
    uploads = _Key("Hash keyword → JSON: filters registered at run time; their code lies in Swift.")
    registry = _Key("Hash ``kind/name`` → JSON: groups and their members, terms, aliases and the like.")
    states = _Key("Hash policy id → JSON: the state from which a restarted actor continues.")
    versions = _Key("Hash ``kind/id`` → integer: compared with expected versions.")
    epochs = _Key("Hash policy id → epoch of the last change of its assignments: enforced from there on.")
    changes = _Key("Stream: one entry per change, its id is ``<epoch>-0``, trimmed at a length.")
    past = _Key("Stream: replaced documents of policies, uploads and the registry, ids ``<epoch>-<part>``.")
    nodes = _Key("Hash node id → JSON: epoch applied (the ACK), refusals, health.")
    acks = _Key("Pub/sub channel: ``node epoch`` after each ACK, for requests that wait for a roll-out.")
    watched = _Key("Sorted set policy id → unix time until which its metric values are observed.")
    observed = _Key("Hash policy id → JSON: last metric values of the watched policies.")
    hosts = _Key("Hash actor host id → JSON: its report, for ``/health``.")
    owners = _Key("Hash slot → ``<term> <host>``: the host of its policies' actors; field ``*`` counts the terms.")
    services = _Key("Hash assignment id → JSON: the last answer of the federated service to its call.")
    events = _Key("Stream: failures in the cluster, in the order in which they were logged, trimmed at a length.")
    event_sources = _Key("Hash source of events → JSON: its token bucket, and how many events were left out.")
    node_problems = _Key("Hash node → JSON: its logged problems, for the next host that watches nodes.")
    accounts = _Key("Sorted set of accounts, all of one score: found by agents that measure stored bytes.")
    account_requests = _Key("Sorted set name → unix time: requests for a complete list of the cluster's accounts.")
    account_reports = _Key("Hash node id → JSON: the requests that its accounts answer, the devices read.")
    account_readers = _Key("Sorted set node id → unix time of its agent's report that it reads accounts.")
    rewrites = _Key("Hash job id → JSON: rewrites of stored objects, as they were submitted.")
    rewrite_orders = _Key("Hash assignment id → JSON: the rewrites that its EXISTING submitted, its parameters.")
    volumes = _Key("Hash volume id → JSON: Sluice's own data of a volume, mainly its fixed filters.")
    volume_operations = _Key("Hash operation id → JSON: operations on volumes, finished or undone after a crash.")
    pools = _Key("Hash name of a pool of Cinder → JSON: capacity and capabilities from its last report.")
    pool_calibrations = _Key("Hash name of a pool → JSON: its measured capacity.")
    volume_report = _Key("String of JSON: recent activity of volumes, for Prometheus; expires when no host measures.")
    tiers = _Key("Hash name → JSON: classes of volumes, each a volume type of Cinder.")
    metric_series = _Key("Hash metric, level and path → JSON: the series of the history of metrics.")
    motif_daemons = _Key("Hash name → JSON: daemons of motifs, their templates.")
    motif_daemons_seen = _Key("Sorted set name → unix time: the last sign of life of each daemon of motifs.")
    motif_calls = _Key("List of ``<until> <JSON>``, bounded: calls that wait for a daemon of motifs.")
    motif_operations = _Key("Hash id → JSON: expansions of all motifs, with their progress.")
    motif_operation_leases = _Key("Sorted set id → unix time until which a daemon works on the operation.")
    motif_operation_owners = _Key("Hash id → the daemon that works on the operation.")
    motif_activity = _Key(
        "Stream, trimmed at a length: opens and changes of objects with motifs, from daemon to daemon."
    )
    motif_spaces = _Key("Sorted set path → unix time: the last report of the owner of each space, bounded.")
    motif_space_reports = _Key("Hash path → JSON: reports of the owners of spaces.")
    motif_leases = _Key("Hash: run of Redis and its first sight, last token, by which leases of motifs are granted.")
    motif_items = _Key("Sorted set of objects that have motifs, all of one score: the result of a scan.")
    motif_scan = _Key("String: exists after a scan of all objects with motifs, until Redis has lost them.")
    bandwidth = _Key("String of JSON: bandwidth of the last second; expires when no host divides.")

    def promises(self, digest: str) -> str:
        """String of JSON: the objectives without traffic; expires with the last report that names it."""
        return f"{self.prefix}:promises:{digest}"

    def rewrite(self, job_id: str, part: str) -> str:
        """A ``part`` of the state of a rewrite.

        ``units`` (list: pending work), ``leases`` (sorted set: unit → unix time at which its claim ends), ``markers``
        (hash unit → JSON: last completed name, number of the claim), ``progress`` (hash of counters), ``pace``
        (string: unix time up to which the rate is reserved), ``failures`` (list of JSON, newest first).
        """
        return f"{self.prefix}:rewrite:{job_id}:{part}"

    def motif_calls_taken(self, daemon: str) -> str:
        """List: the calls that a daemon of motifs has claimed."""
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
