"""Projects, users and roles of a cluster with Keystone, and the credentials of its services."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from sluice_aio.base.files import ensure_secret
from sluice_aio.base.layout import CODE_USER, Layout, ensure_code_key
from sluice_aio.base.ports import HOST
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp

#: User → (password, project, role); the users are for development, so the passwords are public.
PEOPLE: Final = {
    "alice": ("alice-plays", "acme", "member"),
    "rita": ("rita-plays", "acme", "reader"),
    "ada": ("ada-plays", "acme", "admin"),
    "ulf": ("ulf-plays", "umbrella", "member"),
}
#: Users of services, all in this project; each cluster generates their passwords.
SERVICE_PROJECT: Final = "service"
SERVICES: Final = ("sluice", "swift")
ADMIN: Final = "admin"
#: Seconds for which services cache a token; a revoked token is refused after that.
BELIEVED: Final = 10


def password(layout: Layout, user: str) -> str:
    """The password of the administrator or of a service's user; generated at the first call."""
    path = password_file(layout, user)
    path.parent.mkdir(parents=True, exist_ok=True)
    return ensure_secret(path, secrets.token_urlsafe(24).encode()).decode("ascii")


def password_file(layout: Layout, user: str) -> Path:
    """The file with it, readable by its owner only."""
    return layout.data / "keystone" / f"{user}.password"


def authtoken(layout: Layout, user: str) -> dict[str, str]:
    """Options of keystonemiddleware for the service ``user``."""
    login = login_options(layout, user)
    return {"www_authenticate_uri": layout.keystone_url, **login, "token_cache_time": str(BELIEVED)}


def login_options(layout: Layout, user: str) -> dict[str, str]:
    """Options of keystoneauth's plugin ``password`` for the service ``user``."""
    return {
        "auth_url": layout.keystone_url,
        "auth_type": "password",
        "username": user,
        "password": password(layout, user),
        "user_domain_id": DOMAIN,
        "project_name": SERVICE_PROJECT,
        "project_domain_id": DOMAIN,
    }


def cinder_options(layout: Layout) -> dict[str, str]:
    """Options of Sluice's processes that call Cinder, as the service user ``sluice``."""
    password(layout, "sluice")
    return {
        "cinder_auth_url": layout.keystone_url,
        "cinder_user": f"{SERVICE_PROJECT}:sluice",
        "cinder_password_file": str(password_file(layout, "sluice")),
        "konnector_ca_file": str(layout.konnector_certificate),
    }


def seed(layout: Layout) -> None:
    """Create the missing ones.

    :raises PeerError: if Keystone refuses
    """
    keystone = KeystoneHttp(layout.keystone_url)
    keystone.token = keystone.login(ADMIN, password(layout, ADMIN), "admin").id
    roles = {one["name"]: str(one["id"]) for one in keystone.call("GET", "/roles")["roles"]}
    wanted = [*PEOPLE.items(), *((one, (password(layout, one), SERVICE_PROJECT, "service")) for one in SERVICES)]
    project, _, owner = CODE_USER.partition(":")
    wanted.append((owner, (ensure_code_key(layout), project, "member")))
    projects = {
        name: keystone.ensure("project", {"name": name, "domain_id": DOMAIN})
        for name in dict.fromkeys(project for _, (_, project, _) in wanted)
    }
    for name, (secret, project, role) in wanted:
        user = keystone.ensure("user", {"name": name, "password": secret, "domain_id": DOMAIN})
        keystone.call("PUT", f"/projects/{projects[project]}/users/{user}/roles/{roles[role]}")
        if name == "sluice":  # reads the names of all projects
            keystone.call("PUT", f"/system/users/{user}/roles/{roles['reader']}")
    endpoint(keystone, "object-store", f"http://{HOST}:{layout.ports['proxy']}/v1/AUTH_%(project_id)s")
    endpoint(keystone, "sluice", layout.url("api"))


def endpoint(keystone: KeystoneHttp, kind: str, url: str) -> None:
    """The URL of the service of this ``kind`` for clients."""
    service = keystone.ensure("service", {"name": kind, "type": kind})
    known = keystone.call("GET", f"/endpoints?service_id={service}")["endpoints"]
    for interface in ("public", "internal", "admin"):
        old = [one for one in known if one["interface"] == interface]
        body = {"endpoint": {"service_id": service, "interface": interface, "url": url, "region_id": "RegionOne"}}
        if not old:
            keystone.call("POST", "/endpoints", body)
        elif old[0]["url"] != url:
            keystone.call("PATCH", f"/endpoints/{old[0]['id']}", {"endpoint": {"url": url}})
