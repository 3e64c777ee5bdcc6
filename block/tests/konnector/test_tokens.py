"""Tokens: accepted ones, and the errors for others."""

import pytest
from keystoneauth1 import exceptions as ksa

from sluice_block.konnector.https_api import Forbidden, TokenChecker, Unauthorized, open_checker
from sluice_core.errors import PeerError
from sluice_core.options import OptionError


class FakeKeystone:
    """Token → roles; counts the requests."""

    def __init__(self, tokens, expires="2030-01-01T00:00:00.000000Z"):
        self.tokens = tokens
        self.expires = expires
        self.asked = 0
        self.failure = None

    def get(self, url, headers, endpoint_filter):
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        if headers["X-Subject-Token"] not in self.tokens:
            raise ksa.NotFound
        self.roles = self.tokens[headers["X-Subject-Token"]]
        return self

    def json(self):
        return {"token": {"expires_at": self.expires, "roles": [{"name": one} for one in self.roles]}}


class Clock:
    now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def keystone():
    return FakeKeystone({"s": ["service"], "a": ["admin", "member"], "m": ["member"], "none": []})


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tokens(keystone, clock):
    return TokenChecker(keystone, 60.0, clock)


@pytest.mark.parametrize("token", ["s", "a"])
def test_services_and_administrators_pass(tokens, token):
    tokens.check(token)


@pytest.mark.parametrize(
    ("token", "error", "reason"),
    [
        ("", Unauthorized, "a token is needed in `X-Auth-Token`"),
        ("bogus", Unauthorized, "keystone does not know this token"),
        ("m", Forbidden, "has no role `service` or `admin`"),
        ("none", Forbidden, "has no role"),
    ],
)
def test_others_are_refused_with_the_reason(tokens, token, error, reason):
    with pytest.raises(error, match=reason):
        tokens.check(token)


@pytest.mark.parametrize("failure", [ksa.ConnectFailure, ksa.Unauthorized, ksa.InternalServerError])
def test_a_keystone_that_cannot_be_asked_is_no_refusal_and_known_tokens_pass(tokens, keystone, failure):
    tokens.check("s")
    keystone.failure = failure()
    tokens.check("s")
    with pytest.raises(PeerError, match="keystone"):
        tokens.check("a")


def test_a_token_is_believed_for_a_while_and_not_beyond_its_end(tokens, keystone, clock):
    for _ in range(3):
        tokens.check("s")
    assert keystone.asked == 1
    clock.now += 61
    keystone.expires = "2023-11-14T22:14:30.000000Z"  # nine seconds from then
    tokens.check("s")
    clock.now += 10
    del keystone.tokens["s"]
    with pytest.raises(Unauthorized):
        tokens.check("s")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[konnector]\n", r"no section \[keystone_authtoken\]"),
        ("[keystone_authtoken]\nusername = sluice\n", "auth_url|missing"),
        ("[keystone_authtoken]\nauth_type = nonsense\n", "nonsense"),
        ("[keystone_authtoken]\ntoken_cache_time = soon\n", "soon"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(tmp_path, text, reason):
    path = tmp_path / "konnector.conf"
    path.write_text(text)
    with pytest.raises(OptionError, match=reason):
        open_checker(path)
