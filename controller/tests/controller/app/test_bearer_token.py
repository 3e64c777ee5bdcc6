"""A token as Prometheus sends it."""

import pytest

from sluice_controller.app.server import BearerToken


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({"HTTP_AUTHORIZATION": "Bearer abc"}, "abc"),
        ({"HTTP_AUTHORIZATION": "bearer  abc "}, "abc"),
        ({"HTTP_AUTHORIZATION": "Bearer abc", "HTTP_X_AUTH_TOKEN": "other"}, "other"),
        ({"HTTP_AUTHORIZATION": "Basic abc"}, None),
        ({"HTTP_AUTHORIZATION": "Bearer "}, None),
        ({}, None),
    ],
)
def test_a_bearer_token_is_an_auth_token_unless_there_is_one(headers, token):
    seen = []
    BearerToken(lambda environ, start_response: seen.append(environ.get("HTTP_X_AUTH_TOKEN")))(dict(headers), None)
    assert seen == [token]
