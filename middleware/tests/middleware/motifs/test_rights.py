"""Whose rights a motif has: those of who attached it, compared with the access list of the moment."""

import pytest

from sluice_middleware.motifs.rights import OPERATOR, client_known, identity_of, may_read

OWNER = {"swift_owner": True, "REMOTE_USER": "acme,acme:ann,AUTH_acme"}
GUEST = {"REMOTE_USER": "other,other:bob"}
HEADERS = {"HTTP_X_USER_ID": "u1", "HTTP_X_PROJECT_ID": "p1"}
KEYSTONE = {**HEADERS, "keystone.identity": {}, "REMOTE_USER": "whoever"}


@pytest.mark.parametrize(
    ("env", "account", "acl", "may"),
    [
        (OWNER, "AUTH_acme", "", True),
        (OWNER, "AUTH_other", "", False),
        (GUEST, "AUTH_acme", "", False),
        (GUEST, "AUTH_acme", "ann:x, other:bob", True),
        (GUEST, "AUTH_acme", "other", True),
        (GUEST, "AUTH_acme", ".r:*,.rlistings", True),
        (GUEST, "AUTH_acme", ".r:*,.r:-example.org", False),
        (GUEST, "AUTH_acme", ".rlistings", False),
        (KEYSTONE, "AUTH_acme", "p1:u1", True),
        (KEYSTONE, "AUTH_acme", "*:u1", True),
        (KEYSTONE, "AUTH_acme", "p1:u2", False),
        ({"REMOTE_USER": "owner:AUTH_acme"}, "AUTH_acme", "", False),
        ({"REMOTE_USER": "owner:AUTH_acme"}, "AUTH_acme", "owner:AUTH_acme", False),
        ({"REMOTE_USER": "acme,acme:ann,AUTH_acme"}, "AUTH_acme", "", True),
        ({"keystone.identity": {}, "HTTP_X_USER_ID": "u1", "REMOTE_USER": "AUTH_acme"}, "AUTH_acme", "", False),
        ({**GUEST, **HEADERS}, "AUTH_acme", "p1:u1,*:*", False),
        ({**GUEST, **HEADERS}, "AUTH_acme", "other:bob", True),
        ({}, "AUTH_acme", "", False),
    ],
)
def test_an_identity_may_read_what_the_list_says_now(env, account, acl, may):
    assert may_read(identity_of(env, "AUTH_acme"), account, lambda: acl) == may


def test_a_client_is_never_the_operator():
    assert may_read(OPERATOR, "AUTH_acme", str)
    assert identity_of({}, "AUTH_acme") != OPERATOR


def test_a_request_in_the_name_of_a_middleware_is_that_of_its_client():
    client = dict(OWNER)
    with client_known(client):
        made = {"REMOTE_USER": ".wsgi.pre_authed", "swift.infocache": client["swift.infocache"]}
        assert identity_of(made, "AUTH_acme") == identity_of(OWNER, "AUTH_acme")
    assert identity_of(made, "AUTH_acme") == ".wsgi.pre_authed"
    assert client["swift.infocache"] == {}


def test_an_identity_with_many_groups_stays_short():
    env = {"swift_owner": True, "REMOTE_USER": ",".join(f"group{number}" for number in range(500))}
    identity = identity_of(env, "AUTH_acme")
    assert len(identity) <= 400
    assert may_read(identity, "AUTH_acme", str)
