"""The rights of a motif: those of the identity that attached it, by the present access list.

The environs are recorded ones; a case says which keys it changes.
"""

import pytest
from tests.support.recordings.environs import environ

from sluice_middleware.motifs.rights import OPERATOR, client_known, identity_of, may_read

AUTHS = ("tempauth", "keystone")
ALICE, ULF = (environ(f"keystone {name}") for name in ("owner", "stranger"))
#: Two entries of an access list: of the project and user alice, and of ulf.
OF_ALICE, OF_ULF = (f"{one['HTTP_X_PROJECT_ID']}:{one['HTTP_X_USER_ID']}" for one in (ALICE, ULF))
ANY_ALICE, ANY_ULF = (f"*:{one['HTTP_X_USER_ID']}" for one in (ALICE, ULF))


def account_of(env):
    return env["PATH_INFO"].split("/")[2]


def reads(env, acl, account=None):
    """Whether the sender of ``env`` may read under ``acl`` in the account of the request, or in another."""
    return may_read(identity_of(env, account_of(env)), account or account_of(env), lambda: acl)


OWNERS = [f"{auth} {name}" for auth in AUTHS for name in ("owner", "owner copies", "reseller", "s3 owner writes")]
OWNERS += ["keystone administrator", "keystone-s3-acl s3 owner reads", "keystone-s3-acl s3 owner writes"]


@pytest.mark.parametrize("name", OWNERS)
def test_an_owner_reads_everything_in_its_account_and_nothing_in_another(name):
    assert reads(environ(name), "")
    assert not reads(environ(name), "", "AUTH_other")


GUESTS = [f"{auth} {name}" for auth in AUTHS for name in ("stranger", "tempurl", "formpost", "nobody")]
GUESTS += ["tempauth without rights", "keystone reader"]
GUESTS += [f"{auth} nobody who claims to be somebody" for auth in AUTHS]
GUESTS += [f"{auth} tempurl with the token of a stranger" for auth in AUTHS]


@pytest.mark.parametrize("name", GUESTS)
@pytest.mark.parametrize(
    ("acl", "may"),
    [("", False), (".r:*,.rlistings", True), (".r:*,.r:-example.org", False), (".rlistings", False), ("else", False)],
)
def test_others_read_what_everybody_may(name, acl, may):
    assert reads(environ(name), acl) == may


@pytest.mark.parametrize(
    ("name", "acl", "may"),
    [
        ("tempauth stranger", "ann:x, test2:tester2", True),
        ("tempauth stranger", "test2", True),
        ("tempauth without rights", "test:tester3", True),
        ("tempauth without rights", "test:tester", False),
        ("keystone stranger", OF_ULF, True),
        ("keystone stranger", ANY_ULF, True),
        ("keystone stranger", f"{ULF['HTTP_X_PROJECT_ID']}:*", True),
        ("keystone stranger", OF_ALICE, False),
        # the name of a project gives no right: projects of two domains may have the same
        ("keystone stranger", "umbrella", False),
        ("keystone-s3-acl s3 owner reads", ANY_ALICE, True),
        ("keystone-s3-acl s3 owner reads", ANY_ULF, False),
        ("keystone tempurl with the token of a stranger", ANY_ULF, False),
        ("tempauth nobody who claims to be somebody", "test:u,*:*", False),
    ],
)
def test_others_read_what_a_list_says_now(name, acl, may):
    assert reads(environ(name), acl, "AUTH_whose") == may


@pytest.mark.parametrize("name", ["keystone-s3-acl s3 owner writes", "tempauth s3 owner writes"])
def test_who_gets_into_another_account_through_s3api_is_no_owner_of_it(name):
    """With access lists of its own, s3api marks each request as an owner's."""
    env = environ(name)
    assert env["swift_owner"]
    identity = identity_of(env, "AUTH_other")
    assert not may_read(identity, "AUTH_other", str)


def test_a_group_with_the_name_of_an_owner_makes_none():
    env = {**environ("tempauth stranger"), "REMOTE_USER": "owner:AUTH_test"}
    assert not reads(env, "")
    assert not reads(env, "owner:AUTH_test")


def test_a_client_is_never_the_operator():
    assert may_read(OPERATOR, "AUTH_acme", str)
    assert identity_of(environ("keystone nobody"), "AUTH_acme") != OPERATOR


@pytest.mark.parametrize("auth", AUTHS)
def test_a_request_in_the_name_of_a_middleware_is_that_of_its_client(auth):
    client = environ(f"{auth} owner")
    account = account_of(client)
    with client_known(client):
        # formpost makes its requests as every middleware does
        made = {**environ(f"{auth} formpost"), "swift.infocache": client["swift.infocache"]}
        assert identity_of(made, account) == identity_of(environ(f"{auth} owner"), account)
    assert identity_of(made, account) == ".wsgi.pre_authed"
    assert client["swift.infocache"] == {}


def test_an_identity_with_many_groups_stays_short():
    env = {**environ("tempauth owner"), "REMOTE_USER": ",".join(f"group{number}" for number in range(500))}
    identity = identity_of(env, "AUTH_test")
    assert len(identity) <= 400
    assert may_read(identity, "AUTH_test", str)
