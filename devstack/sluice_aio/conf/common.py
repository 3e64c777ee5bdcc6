"""What the configurations of Swift's servers have in common, and who may log in."""

from __future__ import annotations

import getpass
from typing import Final

from sluice_aio.base.layout import Layout
from sluice_aio.base.ports import HOST

#: tempauth user → (key, account); the first ones are administrators of their account.
USERS: Final = {
    "test:tester": ("testing", "AUTH_test"),
    "test2:tester2": ("testing2", "AUTH_test2"),
    "test:tester2": ("testing2", "AUTH_test"),
    "test:tester3": ("testing3", "AUTH_test"),
    "test5:tester5": ("testing5", "AUTH_test5"),
    "test:tester6": ("testing6", "AUTH_test"),
}
#: What a user may do: ``.admin`` everything in his account, ``.reseller_admin`` in every account, ``service``
#: what service accounts ask for, nothing without ACLs.
GROUPS: Final = {
    "test:tester": ".admin",
    "test2:tester2": ".admin",
    "test:tester2": ".admin",
    "test5:tester5": "service",
    "test:tester6": ".reseller_admin",
}


def default(layout: Layout, port: int, workers: int) -> dict[str, str]:
    """What every server's ``[DEFAULT]`` says."""
    return {
        "bind_ip": HOST,
        "bind_port": str(port),
        "user": getpass.getuser(),
        "swift_dir": str(layout.swift_dir),
        "log_level": "INFO",
        "workers": str(workers),
    }
