"""Helpers for tests of objects with motifs: write and contract them, and check whether their bytes are stored."""

import json
import time
from contextlib import contextmanager, suppress

from tests.support.cluster.object_files import file_metadata, object_files

from sluice_aio.cluster.disks import data_files
from sluice_middleware.motifs.daemon_client import DaemonAway, DaemonClient
from sluice_middleware.motifs.daemon_protocol import CONTRACT, EXPAND, WorkerCall
from sluice_middleware.wsgi.response import RefusedRequest
from sluice_middleware.wsgi.sysmeta import CONTRACTED
from sluice_rewrites.accounts import copies_account

#: Two sources, and the object that `concat` makes from them.
FIRST = b"".join(b"%d: the quick brown fox\n" % n for n in range(40_000))
SECOND = b"".join(b"%d: jumps over the lazy dog\n" % n for n in range(40_000))
WHOLE = FIRST + SECOND
#: Temporary reasons why an object is not contracted: no lease yet, or its expansion is about to end.
_LATER = ("may be forgotten", "busy", "changed", "marked a moment ago")
#: The daemon's log line when it knows all objects with motifs; earlier attachments may not be known to other daemons.
_SCANNED = "objects have motifs"


@contextmanager
def motif_daemon(cluster):
    """The motif daemon of a running cluster, from its first scan of the storage on."""
    log = cluster.layout.logs / "motifs.log"
    before = log.read_text(encoding="utf-8").count(_SCANNED) if log.exists() else 0
    cluster.add({"motifs"})
    try:
        end = time.monotonic() + 60
        while (text := log.read_text(encoding="utf-8")).count(_SCANNED) == before:
            assert time.monotonic() < end, text[-2000:]
            time.sleep(0.1)
        yield cluster
    finally:
        cluster.remove("motifs")


def put(swift, path, body=b"", **headers):
    """Write an object or a container."""
    answer = swift.request("PUT", path, body, **headers)
    assert answer.status in (201, 202), (path, answer)
    return answer


def motif(template, **params):
    """The value of ``X-Object-Motif`` for one motif."""
    return json.dumps([{"template": template, "params": params}])


def concat(*sources):
    """The motif of an object that is the concatenation of ``container/object`` of AUTH_test."""
    return motif("concat", of=",".join(f"AUTH_test/{source}" for source in sources))


def sources(swift, container):
    """Write ``FIRST`` and ``SECOND``; return the motif of their concatenation."""
    put(swift, container)
    put(swift, f"{container}/first", FIRST)
    put(swift, f"{container}/second", SECOND)
    return concat(f"{container}/first", f"{container}/second")


def contract(cluster, path, verify="head", account="AUTH_test", expanded=True):
    """Contract an object in all replicas; as :func:`request_contraction`."""
    request_contraction(cluster, path, verify, account, expanded)
    assert is_contracted(cluster, path, account)


def request_contraction(cluster, path, verify="head", account="AUTH_test", expanded=True):
    """Contract an object; a Redis that was just started grants no leases for some seconds.

    :param expanded: wait first until a running expansion is stored
    """
    daemon, end = DaemonClient(str(cluster.layout.motif_socket)), time.monotonic() + 20
    while True:
        try:
            if expanded:
                expand(cluster, path, account)
            daemon.call(WorkerCall(CONTRACT, f"{account}/{path}", verify=verify)).close()
            break
        except (DaemonAway, RefusedRequest) as error:
            if time.monotonic() > end or not any(words in str(error) for words in _LATER):
                raise
            time.sleep(0.1)


def expand(cluster, path, account="AUTH_test"):
    """Expand an object, and wait until its bytes are stored."""
    DaemonClient(str(cluster.layout.motif_socket)).call(WorkerCall(EXPAND, f"{account}/{path}")).close()


def is_contracted(cluster, path, account="AUTH_test"):
    """Whether no newest file of an object has bytes; a proxy answers before all replicas have a PUT."""
    end = time.monotonic() + 10
    while True:
        files = object_files(cluster.device_folders, f"{account}/{path}")
        assert files, f"there is no object `{path}`"
        with suppress(FileNotFoundError):  # replaced since
            states = {CONTRACTED in file_metadata(file) for file in files}
            if len(states) == 1:
                return states.pop()
            assert time.monotonic() < end, "replicas differ"
        time.sleep(0.02)


def stored_names(cluster, account="AUTH_test"):
    """Container and name of all objects of an account."""
    found = (str(file_metadata(path).get("name", "")) for path in data_files(cluster.device_folders))
    return {name.removeprefix(f"/{account}/") for name in found if name.startswith(f"/{account}/")}


def stored_copies(cluster):
    """Storage policy and name of the copies that ``tier`` keeps."""
    return stored_names(cluster, copies_account("AUTH_test"))
