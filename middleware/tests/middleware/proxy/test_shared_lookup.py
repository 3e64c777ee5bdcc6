"""The look-up of ``sluice-reads`` is made once, unless a middleware between changes the request."""

import pytest

from sluice_middleware.testing import ProxyStack
from sluice_middleware.wsgi.policy_lookup import LOOKED_UP


@pytest.fixture
def stack(tmp_path, monkeypatch):
    made = ProxyStack(tmp_path)
    made.set_policies()
    made.found = []
    find = made.proxy.context.reader.find

    def counted(*path):
        made.found.append("/".join(path))
        return find(*path)

    monkeypatch.setattr(made.proxy.context.reader, "find", counted)
    for name in ("o", "other"):
        assert made("PUT", f"/v1/AUTH_a/c/{name}", body=name.encode()).status_int == 201
    made.found.clear()
    return made


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_object_that_is_read_is_looked_up_once(stack, method):
    assert stack(method, "/v1/AUTH_a/c/o").status_int == 200
    assert stack.found == ["AUTH_a/c/o"]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_an_object_that_is_written_is_looked_up_once(stack, method):
    assert stack(method, "/v1/AUTH_a/c/o", body=b"").is_success
    assert stack.found == ["AUTH_a/c/o"]


def test_what_another_middleware_asks_for_is_looked_up_again(stack):
    proxy = stack.reads.app

    def between(env, start_response):
        env["PATH_INFO"] = "/v1/AUTH_a/c/other"
        return proxy(env, start_response)

    stack.reads.app = between
    assert stack("GET", "/v1/AUTH_a/c/o").body == b"other"
    assert stack.found == ["AUTH_a/c/o", "AUTH_a/c/other"]


def test_a_request_that_is_made_again_is_looked_up_again(stack):
    seen = []
    proxy = stack.reads.app

    def between(env, start_response):
        first = list(proxy(env, start_response))
        seen.append(LOOKED_UP in env)
        return [*first, *proxy(env, start_response)]

    stack.reads.app = between
    assert stack("GET", "/v1/AUTH_a/c/o").body == b"oo"
    assert (seen, stack.found) == ([False], ["AUTH_a/c/o"] * 2)
