"""Items that uploaded filters derive in a jail, by the motif template `derive`, bound to an accepted revision."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from tests.support.sandbox.faults import FAULTS, faulty
from tests.support.sandbox.process import SORT, XOR, supervisor, upload

from sluice_code.code_store import CodeStore
from sluice_core.errors import CallerError, NotFound, SluiceError
from sluice_filters.registry import load_filters
from sluice_motifs.api import ExpansionError, NotContractible, TemplateContext
from sluice_motifs.contraction.contractor import CONTRACTED
from sluice_motifs.contraction.preparation import EXPAND, TRUST
from sluice_motifs.runtime import Runtime
from sluice_motifs.storage.leases import LocalLeases
from sluice_motifs.templates.registry import load_templates
from sluice_motifs.testing.memory_shim import MemoryShim
from sluice_sandbox.hosting import OPTIONS, InstalledFilters
from sluice_sandbox.limits import Limits

log = logging.getLogger(__name__)
PARTS = (b"some lines\n" * 3000, b"and more of them\n" * 2000)
INFO = {"parameters": [{"name": "key", "type": "int"}], "on_get": True}


@pytest.fixture(scope="module")
def sandbox():
    limits = Limits(patience=2.5, cpu=0.3, cpu_per_mb=0.1, memory=128 * 1024 * 1024)
    with supervisor(limits) as folder:
        yield folder


class Node:
    """A storage in memory whose node runs uploaded filters."""

    def __init__(self, sandbox, folder):
        self.store = CodeStore(folder / "code")
        options = {one.name: one.default for one in OPTIONS}
        options |= {"code_dir": str(self.store.folder), "sandbox_dir": str(sandbox)}
        self.installed = InstalledFilters(load_filters(), options, log)
        self.shim = MemoryShim(lambda name, chain: self.shim.own_bytes(self.shim.view(name)))
        templates = load_templates(context=TemplateContext(uploaded_filter=self.installed.revision))
        self.runtime = Runtime(self.shim, LocalLeases(), templates)
        for number, part in enumerate(PARTS):
            self.shim.put(f"part {number}", part)

    def deploy(self, code, keyword, main, **more):
        one = upload(code, keyword, main, **{"info": INFO, **more})
        self.store.add(code, one.sha256)
        self.installed.update((one,))
        return one

    def attach(self, content, **params):
        self.shim.put("item", content)
        motif = self.runtime.create_motif("derive", {"of": "part 0,part 1", **params}, "AUTH_acme")
        self.runtime.attach_motif("item", motif)

    def read(self):
        opened = self.runtime.notify_open("item")
        try:
            return b"".join(opened.read())
        finally:
            self.runtime.notify_close(opened)


@pytest.fixture
def node(sandbox, tmp_path):
    return Node(sandbox, tmp_path)


def test_sources_are_streamed_in_and_the_item_out(node):
    one = node.deploy(SORT, "sort_lines", "Sort")
    made = b"".join(sorted(b"".join(PARTS).splitlines(True)))
    node.attach(made, filter="sort_lines", code=one.sha256)
    assert node.runtime.contract("item", EXPAND) == CONTRACTED
    assert node.read() == made


def test_a_motif_keeps_the_revision_that_was_accepted(node):
    first = node.deploy(XOR, "scramble", "Xor")
    made = bytes(value ^ 7 for value in b"".join(PARTS))
    node.attach(made, filter="scramble", code=first.sha256, options="key=7")
    assert node.runtime.contract("item", EXPAND) == CONTRACTED
    other = XOR.replace(b"value ^ key", b"value ^ key ^ 1")
    node.deploy(other, "scramble", "Xor", revision=2, revisions=(first.current,))
    assert node.read() == made

    node.runtime.contract("item")
    node.installed.update(())
    with pytest.raises(ExpansionError, match="no filter `scramble` is uploaded"):
        node.read()
    node.installed.update((first,))
    assert node.read() == made


@pytest.mark.parametrize("name", FAULTS)
def test_a_filter_that_misbehaves_leaves_the_item_contracted_and_says_why(node, name):
    body, reason = FAULTS[name]
    one = node.deploy(faulty(body), "bad", "Bad")
    node.attach(b"".join(PARTS), filter="bad", code=one.sha256)
    with pytest.raises(NotContractible, match=rf"`derive`: .*({reason})"):
        node.runtime.contract("item")
    assert node.runtime.contract("item", TRUST) == CONTRACTED
    with pytest.raises(ExpansionError, match=rf"`derive`: .*({reason})"):
        node.read()
    assert node.shim.view("item").contracted


@pytest.mark.parametrize(
    ("params", "error", "reason"),
    [
        ({"filter": "scramble"}, CallerError, "expected the SHA-256 of the revision that is accepted; the newest is `"),
        ({"filter": "scramble", "code": "0" * 64}, NotFound, "has no revision with the code `000"),
        ({"filter": "scrambel", "code": "0" * 64}, NotFound, "no filter `scrambel` is uploaded"),
        ({"filter": "xor", "code": "0" * 64}, NotFound, "no filter `xor` is uploaded"),
    ],
)
def test_code_that_nobody_accepted_is_not_attached(node, params, error, reason):
    node.deploy(XOR, "scramble", "Xor")
    with pytest.raises(error, match=reason):
        node.attach(b"", **params)


def test_a_revision_that_this_node_lacks_is_an_error_until_it_comes(node):
    first = node.deploy(XOR, "scramble", "Xor")
    absent = replace(first, sha256="0" * 64, revision=2, revisions=(first.current,))
    node.installed.update((absent,))
    with pytest.raises(SluiceError, match=f"code `{'0' * 64}` is not on this node"):
        node.attach(b"", filter="scramble", code="0" * 64)
