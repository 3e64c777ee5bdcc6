"""The common part of the configurations of Swift's servers, and their users.

A Keystone has the users of tempauth with the same accounts, so a test uses the same names with both.
"""

from __future__ import annotations

import getpass
from typing import Final

from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp

#: tempauth user → (key, account); the first ones are administrators of their account.
USERS: Final = {
    "test:tester": ("testing", "AUTH_test"),
    "test2:tester2": ("testing2", "AUTH_test2"),
    "test:tester2": ("testing2", "AUTH_test"),
    "test:tester3": ("testing3", "AUTH_test"),
    "test5:tester5": ("testing5", "AUTH_test5"),
    "test:tester6": ("testing6", "AUTH_test"),
}
#: Rights of a user: ``.admin`` everything in the own account, ``.reseller_admin`` in every account, ``service``
#: the rights of service accounts, nothing without ACLs.
GROUPS: Final = {
    "test:tester": ".admin",
    "test2:tester2": ".admin",
    "test:tester2": ".admin",
    "test5:tester5": "service",
    "test:tester6": ".reseller_admin",
}
#: A right in tempauth → the role with the same right.
_ROLES: Final = {".admin": "member", ".reseller_admin": "ResellerAdmin", "service": "service", "": "guest"}


def default(layout: Layout, port: int, workers: int) -> dict[str, str]:
    """The ``[DEFAULT]`` section of every server."""
    return {
        "bind_ip": HOST,
        "bind_port": str(port),
        "user": getpass.getuser(),
        "swift_dir": str(layout.swift_dir),
        "log_level": "INFO",
        "workers": str(workers),
    }


def write_projects(layout: Layout) -> None:
    """Add the accounts of tempauth to a Keystone that is not created yet."""
    path = layout.data / "keystone" / "projects"
    path.write_text("\n".join(dict.fromkeys(user.partition(":")[0] for user in USERS)), encoding="utf-8")


def seed_users(layout: Layout) -> None:
    """Create the users of tempauth, and the role by which the administrator controls all accounts.

    :raises PeerError: if Keystone refuses
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
