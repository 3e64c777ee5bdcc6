"""``python seed_keystone.py <admin's password> <user → password as JSON>``: users and endpoints of services, a tenant.

Run on the controller, where Keystone serves.
"""

import json
import sys

from sluice_aio.keystone.http import DOMAIN, KeystoneHttp
from sluice_aio.keystone.seed import endpoint

admin_password, passwords = sys.argv[1], json.loads(sys.argv[2])
keystone = KeystoneHttp("http://controller:5000/v3")
keystone.token = keystone.login("admin", admin_password, "admin").id
roles = {one["name"]: one["id"] for one in keystone.call("GET", "/roles")["roles"]}
services = [(name, password, "service", "service") for name, password in passwords.items()]
for name, password, project, role in (*services, ("demo", admin_password, "demo", "member")):
    user = keystone.ensure("user", {"name": name, "password": password, "domain_id": DOMAIN})
    keystone.call("PUT", f"/projects/{project}/users/{user}/roles/{roles[role]}")
endpoint(keystone, "object-store", "http://proxy1:8080/v1/AUTH_%(project_id)s")
endpoint(keystone, "volumev3", "http://controller:8776/v3/%(project_id)s")
endpoint(keystone, "block-storage", "http://controller:8776/v3")
