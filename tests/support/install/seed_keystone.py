"""``python seed_keystone.py <admin's password> <Swift's password> <endpoint>``: Swift's user and endpoint, a tenant.

Run on the controller, where Keystone has just been started.
"""

import sys
import time

from sluice_aio.keystone.http import DOMAIN, KeystoneHttp
from sluice_aio.keystone.seed import endpoint
from sluice_core.errors import PeerError

admin_password, swift_password, swift_url = sys.argv[1:]
keystone = KeystoneHttp("http://controller:5000/v3")
deadline = time.monotonic() + 120
while not keystone.token:
    try:
        keystone.token = keystone.login("admin", admin_password, "admin").id
    except PeerError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.2)
roles = {one["name"]: one["id"] for one in keystone.call("GET", "/roles")["roles"]}
for name, password, project, role in (
    ("swift", swift_password, "service", "service"),
    ("demo", admin_password, "demo", "member"),
):
    user = keystone.ensure("user", {"name": name, "password": password, "domain_id": DOMAIN})
    keystone.call("PUT", f"/projects/{project}/users/{user}/roles/{roles[role]}")
endpoint(keystone, "object-store", swift_url)
