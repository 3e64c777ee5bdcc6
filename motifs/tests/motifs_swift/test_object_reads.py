"""Reads and writes of motifs count as the accounts' downloads and uploads, as at a proxy."""

import hashlib
import logging
from functools import partial
from types import SimpleNamespace

import pytest

from sluice_core.resolve import Candidates
from sluice_middleware.motifs.rights import OPERATOR
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.swift.proxy_api import Request, Response
from sluice_middleware.wsgi.internal_client import SwiftClient
from sluice_motifs.api import SourceGone
from sluice_motifs.storage.records import ItemView, Plain, Record
from sluice_motifs_swift.objects.containers import Containers
from sluice_motifs_swift.objects.reads import ObjectReads
from sluice_motifs_swift.objects.writes import ObjectWrites

BODY = b"bytes of a source"
DIGEST = hashlib.md5(BODY).hexdigest()
WRITTEN = "1700000000.00000"


class Swift:
    """One object, and room for others."""

    def __init__(self):
        self.stored = None

    def __call__(self, env, start_response):
        request = Request(env)
        if request.method == "PUT":
            self.stored = request.body
            return Response(status=201, request=request)(env, start_response)
        if not request.path_info.endswith("/source"):
            return Response(status=404, request=request)(env, start_response)
        headers = {"Etag": DIGEST, "X-Backend-Data-Timestamp": WRITTEN, "X-Backend-Timestamp": WRITTEN}
        return Response(status=200, request=request, body=BODY, headers=headers)(env, start_response)


class Limiter:
    """Records the bytes that pass."""

    def __init__(self):
        self.passed = []

    def throttle_download(self, env, target, answer, candidates):
        return map(partial(self._pass, target), answer.body)

    def _pass(self, target, piece):
        self.passed.append(("download", target, len(piece)))
        return piece

    def throttle_upload(self, env, target, candidates):
        self.passed.append(("upload", target, int(env["CONTENT_LENGTH"])))


@pytest.fixture
def swift():
    return Swift()


@pytest.fixture
def limiter():
    return Limiter()


@pytest.fixture
def handler(swift):
    lookup = SimpleNamespace(candidates=lambda target: Candidates(()))
    return ObjectHandler(swift, lookup, {}, logging.getLogger("test"))


def test_a_source_is_a_download_of_its_account(handler, swift, limiter):
    reads = ObjectReads(handler, Containers(SwiftClient(swift), 0.0), limiter)
    assert b"".join(reads.read("AUTH_a/c/source", OPERATOR, ())) == BODY
    assert limiter.passed == [("download", ("AUTH_a", "c", "source"), len(BODY))]
    with pytest.raises(SourceGone):
        next(reads.read("AUTH_a/c/none", OPERATOR, ()))
    assert len(limiter.passed) == 1


def test_what_is_stored_is_an_upload_of_its_account(handler, swift, limiter):
    writes = ObjectWrites(handler, swift, limiter)
    copied = ItemView("AUTH_b/c/o", Plain(WRITTEN, len(BODY), DIGEST), Record(), False, "", None)
    writes.create("AUTH_b/copies/1", copied, copied.plain, iter([BODY]))
    assert swift.stored == BODY
    assert limiter.passed == [("upload", ("AUTH_b", "c", "o"), len(BODY))]
