"""Accounts of a Swift: login to Keystone, the requests sent, and the endpoints of its catalogue."""

import json

import pytest

from sluice_core.connections.swift_account import password_login, storage_url
from sluice_core.errors import PeerError

USERS = [
    ("sluice:code", "default", "sluice", "code"),
    ("d1/sluice:code", "d1", "sluice", "code"),
    ("d1/a:b:code", "d1", "a:b", "code"),
]


@pytest.mark.parametrize(("written", "domain", "project", "name"), USERS)
def test_a_user_is_written_with_its_project_and_perhaps_its_domain(written, domain, project, name):
    auth = password_login(written, "key")["auth"]
    assert auth["scope"]["project"] == {"name": project, "domain": {"id": domain}}
    user = auth["identity"]["password"]["user"]
    assert (user["name"], user["domain"], user["password"]) == (name, {"id": domain}, "key")


def catalogue(*endpoints, kind="object-store"):
    found = [{"interface": interface, "url": url} for interface, url in endpoints]
    return json.dumps({"token": {"catalog": [{"type": "image", "endpoints": []}, {"type": kind, "endpoints": found}]}})


def test_the_inside_is_preferred():
    both = catalogue(("public", "http://out"), ("internal", "http://in"))
    assert storage_url(both.encode()) == "http://in"
    assert storage_url(catalogue(("public", "http://out")).encode()) == "http://out"


BAD = [b"", b"[]", b"{", b'{"token": {}}', b'{"token": {"catalog": [1]}}', catalogue(("admin", "x")).encode()]


@pytest.mark.parametrize("raw", [*BAD, catalogue(("public", "x"), kind="compute").encode()])
def test_a_catalogue_without_swift_is_keystones_fault(raw):
    with pytest.raises(PeerError, match="names no `object-store`"):
        storage_url(raw)
