"""The headers of a container are cached for a moment; marks are those of version 1."""

import pytest

from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.wsgi.internal_client import SwiftClient
from sluice_motifs_swift.objects.containers import Containers

MARK = "X-Container-Sysmeta-Sluice-Motif-Sources"


class Swift:
    """One container, as headers; None when it does not exist."""

    def __init__(self):
        self.headers = {}
        self.requests = []

    def __call__(self, env, start_response):
        request = Request(env)
        self.requests.append(request.method)
        if self.headers is None:
            return Response(status=404, request=request)(env, start_response)
        if request.method == "POST":
            self.headers[MARK] = request.headers[MARK]
        return Response(status=204, request=request, headers=self.headers)(env, start_response)


@pytest.fixture
def swift():
    return Swift()


@pytest.fixture
def clock():
    return [1000.7]


@pytest.fixture
def containers(swift, clock):
    return Containers(SwiftClient(swift), lambda: clock[0])


def test_a_mark_of_version_1_is_seen_and_removed(containers, swift):
    assert not containers.is_marked("a", "c")
    swift.headers[MARK] = "1000.700"
    assert containers.is_marked("a", "c")
    containers.remove_mark("a", "c")
    assert not containers.is_marked("a", "c")


def test_a_container_that_is_gone_has_no_mark(containers, swift):
    swift.headers = None
    assert not containers.is_marked("a", "c")
    containers.remove_mark("a", "c")


def test_access_lists_are_asked_for_each_time_and_synchronization_now_and_then(containers, swift, clock):
    swift.headers = {"X-Container-Read": "one", "X-Container-Sync-To": "//there"}
    assert (containers.read_acl("a", "c"), containers.is_synchronized("a", "c")) == ("one", True)
    swift.headers = {"X-Container-Read": "two"}
    assert containers.is_synchronized("a", "c"), "remembered"
    assert containers.read_acl("a", "c") == "two"
    clock[0] += 11
    assert not containers.is_synchronized("a", "c")
