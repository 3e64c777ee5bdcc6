"""The users of tempauth in a Keystone, with the same accounts, so that a test says one name wherever they are from."""

from __future__ import annotations

from typing import Final

from sluice_aio.base.layout import Layout
from sluice_aio.conf.common import GROUPS, USERS
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp

#: What tempauth calls a user's rights → the role with the same ones.
_ROLES: Final = {".admin": "member", ".reseller_admin": "ResellerAdmin", "service": "service", "": "guest"}


def write_projects(layout: Layout) -> None:
    """Have a Keystone that is made yet know the accounts of tempauth."""
    path = layout.data / "keystone" / "projects"
    path.write_text("\n".join(dict.fromkeys(user.partition(":")[0] for user in USERS)), encoding="utf-8")


def seed_users(layout: Layout) -> None:
    """The users of tempauth, and the role by which the administrator rules all accounts.

    :raises PeerError: when Keystone refuses
    """
    keystone = KeystoneHttp(layout.keystone_url)
    administrator = keystone.login(seed.ADMIN, seed.password(layout, seed.ADMIN), seed.ADMIN)
    keystone.token = administrator.id
    roles = {name: keystone.ensure("role", {"name": name}) for name in _ROLES.values()}
    for user, (key, _) in USERS.items():
        project, _, name = user.partition(":")
        made = keystone.ensure("user", {"name": name, "password": key, "domain_id": DOMAIN})
        role = roles[_ROLES[GROUPS.get(user, "")]]
        keystone.call("PUT", f"/projects/{project}/users/{made}/roles/{role}")
    everywhere = roles[_ROLES[".reseller_admin"]]
    path = f"/projects/{administrator.project_id}/users/{administrator.user_id}/roles/{everywhere}"
    keystone.call("PUT", path)
