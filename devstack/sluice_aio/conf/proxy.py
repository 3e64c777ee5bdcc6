"""The configuration of a proxy: with Sluice, without it, or with Swift's own encryption instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_aio.base import setup as cluster_setup
from sluice_aio.base.files import Options, section
from sluice_aio.base.layout import CODE_USER, Layout, code_host_options, ensure_code_key
from sluice_aio.base.ports import HOST
from sluice_aio.base.setup import Setup
from sluice_aio.conf.common import GROUPS, USERS, default
from sluice_aio.keystone import seed

#: Left of the filters that make sub-requests; s3api calls tempauth, so it stands between these two.
_LEFT: Final = (
    "catch_errors gatekeeper healthcheck list-endpoints proxy-logging cache domain_remap etag-quoter listing_formats "
    "container_sync bulk tempurl formpost"
)
#: Left and right of s3api; with Keystone this is Swift's order: authtoken removes identity headers of a client, and
#: s3token sends the signature that s3api has read to Keystone.
_AUTH: Final[dict[str, tuple[list[str], list[str]]]] = {
    cluster_setup.TEMPAUTH: ([], ["tempauth"]),
    cluster_setup.KEYSTONE: (["authtoken"], ["s3token", "keystoneauth"]),
}
_BEHIND_AUTH: Final = "staticweb copy container-quotas account-quotas"
#: Filters that turn one request into several.
_MIDDLE: Final = "slo dlo versioned_writes symlink"

#: The domain of ``domain_remap``.
STORAGE_DOMAIN: Final = "example.com"
#: Bytes of a node's cache.
_CACHE_SIZE: Final = 256 << 20
#: memcached may be slow on a busy machine; Swift would stop using it for a minute, and it holds the tokens.
_PATIENT: Final = {
    "connect_timeout": "10",
    "pool_timeout": "10",
    "io_timeout": "10",
    "error_suppression_limit": "1000000",
}
#: ``sluice on one machine, only for play``: not a secret.
_ROOT_FOR_PLAY: Final = "c2x1aWNlIG9uIG9uZSBtYWNoaW5lLCBvbmx5IGZvciBwbGF5"
#: The roles that own the account of their project, with Keystone.
OPERATOR_ROLES: Final = "admin, member"
_OPTIONS: Final[dict[str, Options]] = {
    "etag-quoter": {"enable_by_default": "false"},
    "domain_remap": {"storage_domain": STORAGE_DOMAIN},
    "container_sync": {"current": "//sluice/aio"},
    "s3api": {"s3_acl": "yes", "check_bucket_owner": "yes"},
    "versioned_writes": {"allow_versioned_writes": "true", "allow_object_versioning": "true"},
    "keymaster": {"encryption_root_secret": _ROOT_FOR_PLAY},
    "keystoneauth": {"operator_roles": OPERATOR_ROLES, "project_reader_roles": "reader", "reseller_prefix": "AUTH"},
}
#: Filters whose entry point differs from their name with underscores.
_ENTRIES: Final = {"cache": "memcache"}
_OURS: Final = {"sluice": "proxy", "sluice-reads": "reads"}


def pipeline(setup: Setup, plain: bool, encrypted: bool = False) -> list[str]:
    """The names of the filters and the app in running order."""
    parts = frozenset() if plain or encrypted else setup.parts
    s3 = [*(["sluice-s3select"] if cluster_setup.S3SELECT in parts else []), "s3api"] if setup.s3api else []
    before, behind = _AUTH[setup.auth]
    left = [*_LEFT.split(), *before, *s3, *behind, *_BEHIND_AUTH.split()]
    reads = ["sluice-reads"] if cluster_setup.READS in parts else []
    sluice = ["sluice"] if cluster_setup.PROXY in parts else []
    objects = ["sluice-objects"] if cluster_setup.HOMES in parts else []
    encryption = ["keymaster", "encryption"] if encrypted else []
    return [*left, *reads, *_MIDDLE.split(), *sluice, *objects, *encryption, "proxy-logging", "proxy-server"]


def proxy_conf(
    layout: Layout,
    plain: bool,
    workers: int | None = None,
    setup: Setup | None = None,
    server: str | None = None,
) -> str:
    """proxy-server.conf; ``plain`` is the same pipeline without Sluice.

    ``server`` names the service whose port it uses, by default ``plain`` or ``proxy``; ``encrypted`` is plain with
    Swift's own encryption.  ``workers`` overrides that of the set-up.
    """
    setup = Setup() if setup is None else setup
    server = server or ("plain" if plain else "proxy")
    names = pipeline(setup, plain, encrypted=server == "encrypted")
    general = default(layout, layout.ports[server], setup.proxy_workers if workers is None else workers)
    ours = not plain and cluster_setup.PROXY in setup.parts
    app = {"use": "egg:swift#proxy", "account_autocreate": "true", "allow_account_management": "true"}
    app |= {"use": "egg:openstack-sluice#proxy_server", "sluice_agent_socket": str(layout.agent_socket)} if ours else {}
    sections = [
        section("DEFAULT", general),
        section("pipeline:main", {"pipeline": " ".join(names)}),
        section("app:proxy-server", app),
        *(section(f"filter:{name}", proxy_filter(layout, setup, name)) for name in dict.fromkeys(names[:-1])),
    ]
    return "\n".join(sections)


def rewriter_conf(layout: Layout, redis_url: str, setup: Setup) -> str:
    """The configuration of ``sluice-rewriter``, with its own proxy application."""
    node = _of_the_node(layout, setup)
    del node["agent_socket"]
    return _daemon_conf(layout, "rewriter", {"redis_url": redis_url, **node}, setup)


def motifs_conf(layout: Layout, redis_url: str, setup: Setup) -> str:
    """The configuration of ``sluice-motifs``, with its own proxy application."""
    ours = {"redis_url": redis_url, "socket": str(layout.motif_socket), **setup.motif_options}
    if cluster_setup.CACHE in setup.parts:
        ours["cache_dir"] = str(layout.cache)
    return _daemon_conf(layout, "motifs", {**ours, **_of_the_node(layout, setup)}, setup)


def _daemon_conf(layout: Layout, name: str, options: dict[str, str], setup: Setup) -> str:
    general = {key: value for key, value in default(layout, 0, 0).items() if key not in ("bind_ip", "bind_port")}
    sections = [
        section(name, options),
        section("DEFAULT", general),
        section("pipeline:main", {"pipeline": "cache proxy-server"}),
        section("app:proxy-server", {"use": "egg:swift#proxy"}),
        section("filter:cache", proxy_filter(layout, setup, "cache")),
    ]
    return "\n".join(sections)


def proxy_filter(layout: Layout, setup: Setup, name: str) -> Options:
    """The section of the proxy filter ``name``."""
    if name == "sluice-s3select":
        return {"use": "egg:openstack-sluice#s3select"}
    if name == "sluice-objects":
        return {"use": "egg:openstack-sluice#objects", "swift_dir": str(layout.swift_dir)}
    if name in _OURS:
        return {
            "use": f"egg:openstack-sluice#{_OURS[name]}",
            **_of_the_node(layout, setup),
            **_of_the_filter(layout, setup, name),
        }
    if name == "authtoken":
        return _authtoken(layout)
    if name == "s3token":
        return _s3token(layout)
    options = {"use": f"egg:swift#{_ENTRIES.get(name, name.replace('-', '_'))}", **_OPTIONS.get(name, {})}
    if name == "cache":
        options["memcache_servers"] = f"{HOST}:{layout.ports['memcached']}"
        options["memcache_max_connections"] = "64"  # with Swift's two, tokens get lost at 100 requests at once
        options |= _PATIENT
    elif name == "tempauth":
        options |= {"reseller_prefix": "AUTH, SERVICE", "SERVICE_require_group": "service"}
        for user, (key, _) in USERS.items():
            options[f"user_{user.replace(':', '_')}"] = f"{key} {GROUPS.get(user, '')}".strip()
        if cluster_setup.PROXY in setup.parts:
            options[f"user_{CODE_USER.replace(':', '_')}"] = f"{ensure_code_key(layout)} .admin .reseller_admin"
    return options


def _authtoken(layout: Layout) -> Options:
    """keystonemiddleware before keystoneauth; it caches tokens in Swift's own cache."""
    return {
        "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
        **seed.authtoken(layout, "swift"),
        "delay_auth_decision": "true",
        "cache": "swift.cache",
        "include_service_catalog": "false",
    }


def _s3token(layout: Layout) -> Options:
    """Swift's own: it logs in as Swift, because Keystone answers only services about signatures."""
    login = seed.login_options(layout, "swift")
    return {"use": "egg:swift#s3token", "auth_uri": layout.keystone_url, "delay_auth_decision": "true", **login}


def _of_the_filter(layout: Layout, setup: Setup, name: str) -> Mapping[str, str]:
    """Options of a single Sluice filter."""
    if name != "sluice":
        return setup.reads_options
    cache = {"cache_dir": str(layout.cache), "cache_size": str(_CACHE_SIZE)}
    return {
        **(cache if cluster_setup.CACHE in setup.parts else {}),
        **({"motif_socket": str(layout.motif_socket)} if cluster_setup.MOTIFS in setup.parts else {}),
        **setup.proxy_options,
    }


def _of_the_node(layout: Layout, setup: Setup) -> dict[str, str]:
    keys = {"key_file": str(layout.key_file)} if cluster_setup.KEYS in setup.parts else {}
    node = {"agent_socket": str(layout.agent_socket), "snapshot_dir": str(layout.snapshots)}
    return {**node, **keys, **code_host_options(layout)}
