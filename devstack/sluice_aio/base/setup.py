"""The components of a cluster: the parts of Sluice in it, its storage policies, its pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from sluice_aio.errors import LaunchError

#: The parts of Sluice that run inside Swift or read its files; each may be omitted.
PROXY: Final = "proxy"  # ``egg:openstack-sluice#proxy`` in the proxies' pipeline
READS: Final = "reads"  # ``egg:openstack-sluice#reads`` left of slo
STORAGE: Final = "storage"  # ``egg:openstack-sluice#storage`` in the object servers' pipeline
OBJECT: Final = "object"  # ``egg:openstack-sluice#object`` instead of Swift's object server
DISKFILE: Final = "diskfile"  # Sluice's disk-file classes for both storage policies
KEYS: Final = "keys"  # a key file, configured in proxies and storage nodes
CACHE: Final = "cache"  # a folder of cached objects on each proxy node, configured in its proxy and its agent
S3SELECT: Final = "s3select"  # ``egg:openstack-sluice#s3select`` left of s3api, if that is there
USAGE: Final = "usage"  # agents measure stored bytes of their devices
MOTIFS: Final = "motifs"  # proxies call the motif daemon of their node
HOMES: Final = "homes"  # ``egg:openstack-sluice#objects`` in the proxies; not among the default parts
ALL_PARTS: Final = frozenset({PROXY, READS, STORAGE, OBJECT, DISKFILE, KEYS, CACHE, S3SELECT, USAGE, MOTIFS})

#: Authentication: Swift's tempauth and a static token for the API, or Keystone for both.
TEMPAUTH: Final = "tempauth"
KEYSTONE: Final = "keystone"

#: The storage policies by index: three replicas, and fragments of which any two are enough.
GOLD: Final = "gold"
EC21: Final = "ec21"
POLICIES: Final = (GOLD, EC21)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The configuration of Swift; the defaults are the whole of Sluice.

    ``parts`` are the parts of Sluice, empty for a plain Swift.
    ``proxy_options`` are more options of ``[filter:sluice]``, ``reads_options`` of ``[filter:sluice-reads]``,
    ``storage_options`` of ``[DEFAULT]`` of the object servers.  ``fallocate`` off lets Swift's object servers
    take an upload of any announced length on a small or memory file system.
    ``storage_agents`` makes each object server a node with an agent of its own, ``agent-object1`` ….
    ``agent_options`` maps an agent's service to more options of ``[agent]``.
    ``auth`` is :data:`TEMPAUTH` or :data:`KEYSTONE`; ``api_options`` are more of ``[api]``.
    ``swift_users`` puts tempauth's users (``conf.common.USERS``) into Keystone, in projects whose ids are their names.
    ``sandbox`` off: agents use no supervisor of jailed filters, because none is started.
    ``ceph_conf`` is the configuration of a Ceph cluster, in which Cinder then has a back end; empty without one.
    ``motif_options`` are more options of ``[motifs]``.
    """

    parts: frozenset[str] = ALL_PARTS
    default_policy: str = GOLD
    s3api: bool = True
    auth: str = TEMPAUTH
    swift_users: bool = False
    proxy_workers: int = 2
    storage_workers: int = 0
    fallocate: bool = True
    proxy_options: Mapping[str, str] = field(default_factory=dict)
    reads_options: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    api_options: Mapping[str, str] = field(default_factory=dict)
    storage_agents: bool = False
    agent_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sandbox: bool = True
    ceph_conf: str = ""
    motif_options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(self.parts - ALL_PARTS - {HOMES})
        if unknown:
            raise LaunchError(f"no part `{unknown[0]}`, expected some of {', '.join(sorted(ALL_PARTS))}")
        if self.auth not in (TEMPAUTH, KEYSTONE):
            raise LaunchError(f"no auth `{self.auth}`, expected {TEMPAUTH} or {KEYSTONE}")
        if self.default_policy not in POLICIES:
            raise LaunchError(f"no storage policy `{self.default_policy}`, expected one of {', '.join(POLICIES)}")

    @classmethod
    def plain(cls, default_policy: str = GOLD) -> Self:
        """The same Swift without Sluice."""
        return cls(parts=frozenset(), default_policy=default_policy)
