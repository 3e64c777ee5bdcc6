"""Cinder's user, its place in the catalogue and its default volume type."""

from __future__ import annotations

from sluice_aio.base.layout import Layout
from sluice_aio.cinder.conf import DEFAULT_TYPE, SERVICE
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN, KeystoneHttp


def seed_cinder(layout: Layout) -> None:
    """Make what is not there yet; Keystone and Cinder serve.

    :raises PeerError: when one of them refuses
    """
    keystone = KeystoneHttp(layout.keystone_url)
    admin = keystone.login(seed.ADMIN, seed.password(layout, seed.ADMIN), "admin")
    keystone.token = admin.id
    project = keystone.ensure("project", {"name": seed.SERVICE_PROJECT, "domain_id": DOMAIN})
    password = seed.password(layout, SERVICE)
    user = keystone.ensure("user", {"name": SERVICE, "password": password, "domain_id": DOMAIN})
    role = keystone.ensure("role", {"name": "service"})
    keystone.call("PUT", f"/projects/{project}/users/{user}/roles/{role}")
    # Cinder shows pools and everybody's volumes to administrators alone
    ours = keystone.ensure("user", {"name": "sluice", "password": seed.password(layout, "sluice"), "domain_id": DOMAIN})
    admin_role = keystone.ensure("role", {"name": "admin"})
    keystone.call("PUT", f"/projects/{project}/users/{ours}/roles/{admin_role}")
    url = f"{layout.url(SERVICE)}/v3"
    seed.endpoint(keystone, "volumev3", f"{url}/%(project_id)s")
    seed.endpoint(keystone, "block-storage", url)
    cinder = KeystoneHttp(f"{url}/{admin.project_id}", name="cinder")
    cinder.token = admin.id
    types = cinder.call("GET", "/types")["volume_types"]
    if DEFAULT_TYPE not in {one["name"] for one in types}:
        wanted = {"name": DEFAULT_TYPE, "extra_specs": {"volume_backend_name": "nbd"}}
        cinder.call("POST", "/types", {"volume_type": wanted})
