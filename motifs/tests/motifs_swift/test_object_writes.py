"""Bytes are stored through an application of their own, since one that found devices full does not use them."""

import hashlib
import logging
from types import SimpleNamespace

import pytest

from sluice_core.describe import PROXY
from sluice_core.errors import PeerError
from sluice_core.resolve import Candidates
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.motifs.object_views import view_of
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.wsgi.stored_object import StoredObject
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs_swift.objects.writes import ObjectWrites

BODY = b"some bytes"
LOG = logging.getLogger("test")


class FullDevices:
    """Swift's proxy application: after a PUT that finds no space it answers no other request."""

    def __init__(self):
        self.left_alone = False

    def __call__(self, env, start_response):
        request = Request(env)
        if request.method == "PUT" and request.content_length:
            self.left_alone = True
        stored = {"PUT": 201, "POST": 202}[request.method]
        return Response(status=503 if self.left_alone else stored, request=request)(env, start_response)


@pytest.fixture
def writes():
    lookup = SimpleNamespace(candidates=lambda target: Candidates(()))
    handler = ObjectHandler(FullDevices(), lookup, {}, LOG)
    return ObjectWrites(handler, FullDevices(), BandwidthLimiter("", PROXY, LOG))


def test_what_finds_no_room_hinders_no_contraction(writes):
    written = "1700000000.00000"
    headers = {
        "Content-Length": str(len(BODY)),
        "Etag": hashlib.md5(BODY).hexdigest(),
        "X-Backend-Data-Timestamp": written,
        "X-Backend-Timestamp": written,
    }
    seen = view_of("AUTH_a/c/o", StoredObject(list(headers.items())))
    record = Record((Motif("url", {"source": "http://example.org/o"}),))
    for _ in range(2):
        with pytest.raises(PeerError, match="503 Service Unavailable"):
            writes.expand(seen, record, iter([BODY]))
        assert writes.contract(seen, record)
        assert writes.post(seen, record)


class Quotas:
    """Swift's proxy application over one container and its account; keeps the stored bytes."""

    def __init__(self, **headers):
        self.headers = {name.replace("_", "-"): str(value) for name, value in headers.items()}
        self.stored = []

    def __call__(self, env, start_response):
        request = Request(env)
        if request.method == "HEAD":
            return Response(status=204, headers=self.headers, request=request)(env, start_response)
        self.stored.append(request.body)
        return Response(status=201, request=request)(env, start_response)


OVER = {"X_Container_Bytes_Used": 1001, "X_Container_Object_Count": 1, "X_Account_Bytes_Used": 1001}


@pytest.mark.parametrize(
    ("quota", "taken"),
    [
        ({"X_Container_Meta_Quota_Bytes": 1000}, False),
        ({"X_Container_Meta_Quota_Bytes": 2000}, True),
        ({"X_Account_Sysmeta_Quota_Bytes": 1000}, False),
        ({"X_Account_Sysmeta_Quota_Bytes": 2000}, True),
        ({}, True),
    ],
)
def test_new_content_passes_the_quotas_and_the_bytes_of_before_do_not(quota, taken):
    swift = Quotas(**OVER, **quota)
    lookup = SimpleNamespace(candidates=lambda target: Candidates(()))
    writes = ObjectWrites(ObjectHandler(swift, lookup, {}, LOG), swift, BandwidthLimiter("", PROXY, LOG))
    headers = {"Content-Length": "10", "Etag": hashlib.md5(BODY).hexdigest(), "X-Backend-Timestamp": "1700000000.00000"}
    headers["X-Backend-Data-Timestamp"] = headers["X-Backend-Timestamp"]
    seen = view_of("AUTH_a/c/o", StoredObject(list(headers.items())))
    record = Record((Motif("url", {"source": "http://example.org/o"}),))
    if taken:
        assert writes.replace(seen, record, iter([b"other bytes"]))
    else:
        with pytest.raises(PeerError, match="413 Request Entity Too Large"):
            writes.replace(seen, record, iter([b"other bytes"]))
    assert writes.expand(seen, record, iter([BODY]))
    assert swift.stored == [*([b"other bytes"] if taken else []), BODY]
