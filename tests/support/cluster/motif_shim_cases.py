"""The contract suite of shims on a real Swift: ``tests/functional/motifs/test_shim.py`` runs it in another process.

``SLUICE_MOTIFS_CONF`` names the configuration of the cluster's motif daemon; the account must exist.
"""

import io
import os
import uuid
from dataclasses import replace

import pytest

from sluice_middleware.swift import internal_api

internal_api.eventlet_monkey_patch()

import logging  # noqa: E402

from sluice_core.describe import PROXY  # noqa: E402
from sluice_core.store.store import Store  # noqa: E402
from sluice_middleware.bandwidth.limiter import BandwidthLimiter  # noqa: E402
from sluice_middleware.proxy.object_handler import ObjectHandler  # noqa: E402
from sluice_middleware.wsgi.internal_client import SwiftClient, final_app, load_app, make_environment  # noqa: E402
from sluice_middleware.wsgi.response import UpstreamResponse  # noqa: E402
from sluice_middleware.wsgi.worker_context import WorkerContext  # noqa: E402
from sluice_motifs.runtime import Runtime  # noqa: E402
from sluice_motifs.storage.leases import LocalLeases  # noqa: E402
from sluice_motifs.storage.shim import Reference  # noqa: E402
from sluice_motifs.testing.shim_suite import ShiftedCopy, ShimContract, SweptCopiesContract  # noqa: E402
from sluice_motifs_swift.objects import batched_app  # noqa: E402
from sluice_motifs_swift.objects.batched_app import BatchedApp  # noqa: E402
from sluice_motifs_swift.objects.containers import Containers  # noqa: E402
from sluice_motifs_swift.objects.copies import is_copy  # noqa: E402
from sluice_motifs_swift.objects.item_index import ItemIndex, set_complete  # noqa: E402
from sluice_motifs_swift.objects.shim import SwiftShim  # noqa: E402
from sluice_motifs_swift.settings import read_settings  # noqa: E402

CONF = os.environ.get("SLUICE_MOTIFS_CONF", "")
ACCOUNT = "AUTH_test"
TEMPLATES = {"shifted_copy": ShiftedCopy}


class ViewsInContainer:
    """Objects of one container, by their names."""

    def __init__(self, inner, prefix):
        self._inner = inner
        self._prefix = prefix

    def view(self, name):
        if is_copy(name):
            return self._inner.view(name)
        view = self._inner.view(self._prefix + name)
        return None if view is None else replace(view, name=name)

    def view_all(self, names):
        full = [name if is_copy(name) else self._prefix + name for name in names]
        views = self._inner.view_all(full)
        return [view and replace(view, name=name) for name, view in zip(names, views, strict=True)]


class InContainer(ViewsInContainer):
    """A shim whose items are these."""

    def __init__(self, inner, prefix):
        super().__init__(inner, prefix)
        self.copies = CopiesInContainer(inner.copies, prefix)
        self.unhurried = ViewsInContainer(inner.unhurried, prefix)

    def _full(self, seen):
        return replace(seen, name=self._prefix + seen.name)

    def scan(self):
        for view in self._inner.scan():
            if view.name.startswith(self._prefix):
                yield replace(view, name=view.name.removeprefix(self._prefix))

    def read(self, name, reader, chain, version=""):
        return self._inner.read(self._prefix + name, reader, chain, version)

    def own_bytes(self, seen):
        return self._inner.own_bytes(self._full(seen))

    def annotate(self, seen, record):
        return self._inner.annotate(self._full(seen), record)

    def contract(self, seen, record):
        return self._inner.contract(self._full(seen), record)

    def expand(self, seen, record, pieces):
        return self._inner.expand(self._full(seen), record, pieces)

    def replace(self, seen, record, pieces):
        return self._inner.replace(self._full(seen), record, pieces)


class CopiesInContainer:
    """The copies of these items."""

    def __init__(self, inner, prefix):
        self._inner = inner
        self._prefix = prefix
        self._names = set()

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def name(self, item, placement, digest):
        name = self._inner.name(self._prefix + item, placement, digest)
        if name not in self._names and (left := self._inner.find(name)) is not None:
            self._inner.delete(left)  # of another test
        self._names.add(name)
        return name

    def store(self, name, item, plain, pieces):
        self._inner.store(name, replace(item, name=self._prefix + item.name), plain, pieces)

    def scan(self):
        return (one for one in self._inner.scan() if one.name in self._names)

    def refer(self, copy, item, seen):
        self._inner.refer(copy, self._prefix + item, seen)

    def references(self, copy):
        found = self._inner.references(copy)
        ours = [one for one in found if one.item.startswith(self._prefix)]
        return [replace(one, item=one.item.removeprefix(self._prefix)) for one in ours]

    def outlived(self, reference):
        return self._inner.outlived(replace(reference, item=self._prefix + reference.item))

    def drop(self, reference):
        self._inner.drop(replace(reference, item=self._prefix + reference.item))


class Storage:
    """A container of its own for each test."""

    def __init__(self, app, values, kind):
        self._app = app
        self._container = f"shim-{uuid.uuid4().hex[:8]}"
        policy = {"HTTP_X_STORAGE_POLICY": "ec21" if kind == "ec21" else "gold"}
        assert self._send("PUT", **policy) == 201
        store, client = Store(values["redis_url"], values["redis_prefix"]), SwiftClient(app)
        store.run(set_complete(store.keys))
        log = logging.getLogger("sluice")
        context = WorkerContext(values, log)
        front = BatchedApp(app) if kind == "batched" else app
        handler = ObjectHandler(front, context.lookup, context.filters, log)
        limiter = BandwidthLimiter(values["agent_socket"], PROXY, log)
        index = ItemIndex(store, client, TEMPLATES)
        inner = SwiftShim(handler, app, Containers(client), index, TEMPLATES, store, limiter, final_app(app))
        prefix = f"{ACCOUNT}/{self._container}/"
        self.shim = InContainer(inner, prefix)
        runtime = Runtime(self.shim, LocalLeases(), TEMPLATES)
        inner.reads.open = lambda name, chain: runtime.notify_open(name.removeprefix(prefix), chain)

    def _send(self, method, *name, body=b"", **headers):
        env = make_environment(method, ACCOUNT, self._container, *name)
        env |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body)), **headers}
        answer = UpstreamResponse(self._app, env)
        list(answer.body)
        return answer.code

    def put(self, name, content):
        assert self._send("PUT", name, body=content, CONTENT_TYPE="text/plain") == 201

    def delete(self, name):
        assert self._send("DELETE", name) == 204

    def attach(self, name, record):
        assert self.shim.annotate(self.shim.view(name), record)


@pytest.fixture(scope="session")
def swift_app():
    return load_app(CONF)


class TestSwiftShim(ShimContract, SweptCopiesContract):
    placement = "ec21"

    @pytest.fixture(params=["gold", "batched", "ec21"])
    def storage(self, swift_app, request):
        return Storage(swift_app, read_settings(CONF), request.param)


def test_a_batched_shim_sends_no_batch_to_prove_that_a_copy_is_outlived(swift_app, monkeypatch):
    sent, send = [], batched_app.send_batch
    monkeypatch.setattr(batched_app, "send_batch", lambda *batch: sent.append(batch) or send(*batch))
    storage = Storage(swift_app, read_settings(CONF), "batched")
    storage.put("item", b"some bytes")
    seen = storage.shim.view("item")
    assert sent
    copies = storage.shim.copies
    copy = copies.name("item", "", "0" * 64)
    sent.clear()
    assert copies.outlived(Reference(copy, "item", seen.opaque.version, 0.0, ""))
    assert sent == []
