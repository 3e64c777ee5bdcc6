"""Objects contracted by version 1 without a copy: ``tests/functional/motifs/test_version_one.py`` runs these cases.

Today's shim contracts objects and sets marks in the way of that version.
"""

import io
import logging
import uuid

import pytest
from tests.support.cluster import motif_shim_cases as cases

from sluice_core.describe import PROXY
from sluice_core.store.store import Store
from sluice_middleware.bandwidth.limiter import BandwidthLimiter
from sluice_middleware.proxy.object_handler import ObjectHandler
from sluice_middleware.wsgi.internal_client import SwiftClient, final_app, load_app, make_environment
from sluice_middleware.wsgi.response import UpstreamResponse
from sluice_middleware.wsgi.worker_context import WorkerContext
from sluice_motifs.api import COPY
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.storage.records import Motif, Record
from sluice_motifs.templates.compressed import Compressed
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.template_suite import CallOfTest
from sluice_motifs_swift.copy_upkeep import VersionOne
from sluice_motifs_swift.objects.containers import Containers, RetainedSources
from sluice_motifs_swift.objects.item_index import ItemIndex, set_complete
from sluice_motifs_swift.objects.shim import SwiftShim
from sluice_motifs_swift.settings import read_settings
from sluice_rewrites.accounts import add_accounts

BYTES = b"what a client wrote\n" * 1000
MARK = {"HTTP_X_CONTAINER_SYSMETA_SLUICE_MOTIF_SOURCES": "1700000000.000"}


class OldStore:
    """A container with a source and a preserving object that relies on it."""

    def __init__(self, template, source):
        self._app = load_app(cases.CONF)
        values = read_settings(cases.CONF)
        self.container = f"version-one-{uuid.uuid4().hex[:8]}"
        self.source, self.item = (f"{cases.ACCOUNT}/{self.container}/{name}" for name in ("source", "item"))
        store, client = Store(values["redis_url"], values["redis_prefix"]), SwiftClient(self._app)
        store.run(set_complete(store.keys))
        store.run(add_accounts(store.keys, [cases.ACCOUNT]))
        log = logging.getLogger("sluice")
        context = WorkerContext(values, log)
        templates = load_templates()
        self.containers, index = Containers(client), ItemIndex(store, client, templates)
        self.shim = SwiftShim(
            ObjectHandler(self._app, context.lookup, context.filters, log),
            self._app,
            self.containers,
            index,
            templates,
            store,
            BandwidthLimiter(values["agent_socket"], PROXY, log),
            final_app(self._app),
        )
        self.runtime = Runtime(self.shim, LocalLeases(), templates)
        self.shim.reads.open, index.items = self.runtime.notify_open, self.runtime.items
        self.retained = RetainedSources(client, self.shim)
        self.version_one = VersionOne(store, client, self.shim, self.containers, self.runtime, LocalLeases(), templates)
        self.send("PUT", **MARK)
        self.send("PUT", "source", source)
        self.send("PUT", "item", BYTES)
        motif = Motif(template, {"source": self.source}, f"owner:{cases.ACCOUNT}")
        made_from = {self.source: self.shim.view(self.source).plain.version}
        assert self.shim.contract(self.shim.view(self.item), Record((motif,), made_from))
        self.runtime.items.put(self.item, len(BYTES), expanded=False)

    def send(self, method, name="", body=b"", **headers):
        env = make_environment(method, cases.ACCOUNT, self.container, *([name] if name else []))
        env |= {
            "wsgi.input": io.BytesIO(body),
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": "text/plain",
            **headers,
        }
        answer = UpstreamResponse(self._app, env)
        list(answer.body)
        assert answer.code < 300, answer.status

    def read(self):
        opened = self.runtime.notify_open(self.item)
        try:
            return b"".join(opened.read())
        finally:
            opened.close()


PACKED = b"".join(Compressed({"source": "a", "engine": "zstd"}).expand(CallOfTest("b", {"a": BYTES}, 0, 1000)))


@pytest.fixture(params=[("duplicate_of", BYTES), ("decompressed", PACKED)], ids=["duplicate", "decompressed"])
def old(request):
    return OldStore(*request.param)


def test_what_stands_on_its_source_is_read(old):
    assert old.shim.view(old.item).contracted
    assert old.read() == BYTES


@pytest.mark.parametrize("change", ["PUT", "DELETE"])
def test_a_source_may_be_changed_before_what_stands_on_it_is_contracted_anew(old, change):
    old.retained.retain(old.source)
    old.retained.retain(old.source)
    old.send(change, "source", b"other bytes" if change == "PUT" else b"")
    assert old.read() == BYTES


def test_everything_is_contracted_anew_and_then_marks_are_gone(old):
    assert old.containers.is_marked(cases.ACCOUNT, old.container)
    assert old.version_one.finish()
    view = old.shim.view(old.item)
    assert view.contracted
    assert COPY in view.record.motifs[0].params
    assert not old.containers.is_marked(cases.ACCOUNT, old.container)
    old.send("DELETE", "source")
    assert old.read() == BYTES


def test_marks_stay_while_an_object_stands_on_a_source_that_is_gone(old):
    old.send("DELETE", "source")
    assert not old.version_one.finish()
    assert old.containers.is_marked(cases.ACCOUNT, old.container)
