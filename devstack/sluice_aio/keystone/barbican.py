"""The configuration of Barbican, its users, and the castellan configuration of its clients."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sluice_aio.base.files import ensure_secret, section
from sluice_aio.base.layout import Layout
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp

#: Barbican's own user, and the user whose secrets are Sluice's keys.
SERVICE: Final = "barbican"
READER: Final = "sluice-keys"
#: The role that may create and read the keys of its project; ``creator`` is no longer enough.
READER_ROLE: Final = "member"


def folder(layout: Layout) -> Path:
    """Its configuration and its secrets, encrypted."""
    return layout.data / SERVICE


def write_barbican(layout: Layout) -> None:
    """Write barbican.conf, readable by its owner only, with a key that is generated at the first call."""
    home = folder(layout)
    home.mkdir(parents=True, exist_ok=True)
    kek = ensure_secret(home / "kek", base64.urlsafe_b64encode(secrets.token_bytes(32))).decode("ascii")
    general = {
        "host_href": layout.url(SERVICE),
        "use_stderr": "true",
        "db_auto_create": "true",
        "transport_url": "fake:/",  # there is no queue; its library requires an address
    }
    sections = [
        section("DEFAULT", general),
        section("database", {"connection": f"sqlite:///{home}/barbican.db"}),
        section("queue", {"enable": "false"}),
        section("simple_crypto_plugin", {"kek": kek}),
        section("keystone_authtoken", seed.authtoken(layout, SERVICE)),
    ]
    path = home / "barbican.conf"
    path.touch(mode=0o600)
    path.write_text("\n".join(sections), encoding="utf-8")


def seed_barbican(layout: Layout) -> None:
    """Create its users and its catalogue entry, if they are missing.

    :raises PeerError: if Keystone refuses
    """
    keystone = KeystoneHttp(layout.keystone_url)
    admin = seed.ADMIN
    keystone.token = keystone.login(admin, seed.password(layout, admin), "admin").id
    project = keystone.ensure("project", {"name": seed.SERVICE_PROJECT, "domain_id": DOMAIN})
    for name, role in {SERVICE: "service", READER: READER_ROLE}.items():
        password = seed.password(layout, name)
        user = keystone.ensure("user", {"name": name, "password": password, "domain_id": DOMAIN})
        role_id = keystone.ensure("role", {"name": role})
        keystone.call("PUT", f"/projects/{project}/users/{user}/roles/{role_id}")
    seed.endpoint(keystone, "key-manager", layout.url(SERVICE))


def key_manager_conf(
    layout: Layout, active: str, keys: Mapping[str, str], user: str = READER, password: str | None = None
) -> str:
    """A castellan configuration for ``key_manager_conf`` of Sluice's filters; ``keys`` are identifier → secret."""
    login = {
        "backend": "barbican",
        "auth_type": "keystone_password",
        "auth_url": layout.keystone_url,
        "username": user,
        "password": seed.password(layout, user) if password is None else password,
        "project_name": seed.SERVICE_PROJECT,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    ours = {"active": active, "keys": ",".join(f"{name}:{secret}" for name, secret in keys.items())}
    return "\n".join([section("key_manager", login), section("sluice", ours)])
