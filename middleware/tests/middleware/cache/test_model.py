"""Two nodes, any order of events: no client reads data older than the last write that the node knows."""

import contextlib
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.middleware.cache import PATH, Disks, Worker

from sluice_core.cache.write_journal import WriteJournalReader
from sluice_core.cache.write_marks import open_write_marks

NODES = (0, 1)
STEPS = st.tuples(
    st.sampled_from(NODES),
    st.sampled_from(
        ("PUT", "POST", "DELETE", "GET", "GET", "GET", "HEAD", "failed PUT", "GET over PUT", "hear", "missed")
    ),
)


class Model:
    """Each body, and each metadata value, is the number of the write that made it; 0 before the first."""

    def __init__(self, folder):
        self.disks = Disks()
        self.workers = [Worker(self.disks, folder / str(node)) for node in NODES]
        self.marks = [open_write_marks(folder / str(node)) for node in NODES]
        self.readers = [
            WriteJournalReader(folder / str(node), marks) for node, marks in zip(NODES, self.marks, strict=True)
        ]
        self.version = 0
        self.heard = [0, 0]

    def step(self, node, what):
        if what in ("PUT", "POST", "DELETE"):
            self.write(node, what)
        elif what == "failed PUT":
            self.disks.status = 503
            assert self.workers[node].request("PUT", body=b"never").code == 503
            self.disks.status = 0
        elif what == "hear":
            for key, found in self.readers[1 - node].read():
                self.marks[node].apply(key, found)
            self.heard[node] = self.version
        elif what == "missed":
            self.marks[node].mark_missed()
            self.heard[node] = self.version
        elif what == "GET over PUT":
            answer = self.workers[node].start("GET")
            self.write(node, "PUT")
            list(answer.body)
            answer.body.close()
        else:
            self.check(node, self.workers[node].request(what))

    def write(self, node, what):
        if what == "POST" and PATH not in self.disks.objects:
            return
        self.version += 1
        body = b"%d" % self.version if what == "PUT" else b""
        self.workers[node].request(what, body=body, x_object_meta_version=str(self.version))
        self.heard[node] = self.version

    def check(self, node, reply):
        """Check that the read data are as new as the last known write."""
        if reply.code == 404:
            assert PATH not in self.disks.objects
        else:
            assert self.heard[node] <= int(reply.headers["X-Object-Meta-Version"]) <= self.version

    def close(self):
        for worker in self.workers:
            if worker.cache._store is not None:
                worker.cache.store.close()
        for one in (*self.readers, *self.marks):
            one.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_no_client_reads_a_version_older_than_one_its_node_knows(steps):
    folder = Path(tempfile.mkdtemp(prefix="cache-"))
    try:
        with contextlib.closing(Model(folder)) as model:
            for node, what in steps:
                model.step(node, what)
            for node in NODES:
                model.step(node, "hear")
                model.step(node, "GET")
    finally:
        shutil.rmtree(folder)
