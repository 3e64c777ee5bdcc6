"""Addresses, users, and files to source in a shell, for a cluster that ``up`` has started."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from pathlib import Path

from sluice_aio.base.layout import Layout
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.conf.common import USERS
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN


def show_tempauth(cluster: Cluster, plain: bool) -> None:
    """Print the addresses of a cluster with tempauth; ``plain``: also the proxy without Sluice."""
    layout = cluster.layout
    user, (key, account) = next(iter(USERS.items()))
    print(f"swift      {cluster.proxy_url}/auth/v1.0  user {user}, key {key}, account {account}")
    print(f"s3         {cluster.proxy_url}  access key {user}, secret key {key}")
    if plain:
        print(f"plain      {cluster.plain_url}/auth/v1.0")
    print(f"api        {cluster.api_url}  X-Auth-Token: $(cat {layout.token_file})")
    print(f"play       . {write_playrc(layout)}")


def show_keystone(cluster: Cluster, profiles: Collection[str]) -> None:
    """Print the addresses of a cluster with Keystone, and the additions of its ``profiles``."""
    layout = cluster.layout
    user = next(iter(seed.PEOPLE))
    print(f"keystone   {layout.keystone_url}")
    if "block" in profiles:
        print(f"cinder     {layout.url('cinder')}/v3")
    if "horizon" in profiles:
        admin = seed.password_file(layout, seed.ADMIN)
        print(f"dashboard  {layout.url('horizon')}/  user {seed.ADMIN}, password: $(cat {admin})")
        print(f"           or user {user}, password {seed.PEOPLE[user][0]}")
    print(f"api        {cluster.api_url}  X-Auth-Token: $(openstack token issue -f value -c id)")
    print(
        f"play       . {write_openrc(layout, user)}  ({user}; as the administrator: {write_openrc(layout, seed.ADMIN)})"
    )


def write_playrc(layout: Layout) -> Path:
    """Write a file to source in a shell: variables for ``curl`` and ``swift``; readable by its owner only."""
    user, (key, _) = next(iter(USERS.items()))
    lines = [
        f"export SLUICE_URL={layout.url('api')}",
        f"export SLUICE_TOKEN_FILE={shlex.quote(str(layout.token_file))}",
        'TOKEN=$(cat "$SLUICE_TOKEN_FILE")',
        f"export ST_AUTH={layout.url('proxy')}/auth/v1.0 ST_USER={user} ST_KEY={key}",
        f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH",
    ]
    path = layout.folder / "playrc"
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_openrc(layout: Layout, user: str) -> Path:
    """Write a file to source: variables for ``openstack``, ``sluice`` and ``cinder`` as ``user``; mode 0600."""
    if user == seed.ADMIN:  # its project has the same name
        password, project = seed.password(layout, user), user
    else:
        password, project, _ = seed.PEOPLE[user]
    values = {
        "OS_AUTH_URL": layout.keystone_url,
        "OS_IDENTITY_API_VERSION": "3",
        "OS_USERNAME": user,
        "OS_PASSWORD": password,
        "OS_PROJECT_NAME": project,
        "OS_USER_DOMAIN_ID": DOMAIN,
        "OS_PROJECT_DOMAIN_ID": DOMAIN,
        "OS_REGION_NAME": "RegionOne",
        "OS_VOLUME_API_VERSION": "3",
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in values.items()]
    lines.append(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    path = layout.folder / f"openrc-{user}"
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
