"""The lock of an object keeps a promise and the commit of a file apart, in one process and between processes."""

import os
import subprocess
import sys
from functools import partial

import pytest
from tests.support.middleware.object_server import StorageNode, swift_conf
from tests.support.middleware.voters import CREATED, Voter

from sluice_middleware.object_server.voter import lock
from sluice_middleware.object_server.voter.device_files import records_folder
from sluice_middleware.object_server.voter.lock import Busy, ObjectLock
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import POLICIES
from sluice_middleware.swift.object_votes import LOOK, PROMISE
from sluice_middleware.wsgi import sysmeta
from sluice_objects.protocol.acceptor import Promise
from sluice_objects.protocol.stamps import Stamp

FIRST, SECOND = Stamp(CREATED, 1, 0), Stamp(CREATED, 2, 0)
NAME, OTHER = "0123456789abcdef" * 2, "0123456789abcd0f" * 2
#: Holds the lock of an object, promises a ballot when its parent says so, and ends.
PROMISING = """\
import sys
from types import SimpleNamespace
from sluice_middleware.object_server.voter.device_files import DeviceFiles
from sluice_objects.protocol.acceptor import Acceptor
from sluice_objects.protocol.stamps import Stamp

device, objects, ballot = sys.argv[1:]
manager = SimpleNamespace(get_ondisk_files=lambda *args, **kwargs: {})
policy = SimpleNamespace(idx=0)
files = DeviceFiles(SimpleNamespace(_device_path=device, _datadir=objects, policy=policy, manager=manager))
with files.lock():
    print("held", flush=True)
    if sys.stdin.readline():
        Acceptor(files).promise(Stamp.read(ballot), "h2:1")
"""


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def node(tmp_path):
    return StorageNode(tmp_path / "node")


@pytest.fixture
def voter(node):
    return Voter(node)


@pytest.fixture
def paused(monkeypatch):
    """Calls what a test appends, one for each time that a caller waits for a lock."""
    calls = []
    monkeypatch.setattr(green, "pause", lambda seconds: calls.pop(0)())
    return calls


@pytest.fixture
def other_process(voter):
    """Another worker process that holds the lock of the object, and promises a ballot when it is told so."""
    file = voter.file()
    arguments = [sys.executable, "-c", PROMISING, file._device_path, file._datadir, SECOND.internal]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(arguments, env=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_lock_is_of_one_object(tmp_path, paused):
    with ObjectLock(str(tmp_path / "new"), NAME), ObjectLock(str(tmp_path / "new"), OTHER):
        assert not paused


def test_who_waits_for_a_lock_gets_it_when_it_is_released(tmp_path, paused):
    first, second = ObjectLock(str(tmp_path), NAME), ObjectLock(str(tmp_path), NAME)
    first.__enter__()
    paused += [lambda: None, lambda: first.__exit__()]
    with second:
        assert not paused


def test_a_lock_that_stays_held_is_given_up(tmp_path, paused, monkeypatch):
    monkeypatch.setattr(lock, "_TIMEOUT", 0.0)
    with ObjectLock(str(tmp_path), NAME):
        paused.append(lambda: None)
        with pytest.raises(Busy), ObjectLock(str(tmp_path), NAME):
            pass
    with ObjectLock(str(tmp_path), NAME):
        pass


def test_a_device_that_hangs_refuses_writes_and_has_no_vote(node, voter, paused, monkeypatch):
    monkeypatch.setattr(lock, "_TIMEOUT", 0.0)
    voter.promise(FIRST)
    monkeypatch.setattr(green, "pause", lambda seconds: None)
    with ObjectLock(records_folder(str(node.folder / "sda"), POLICIES[0]), voter.file()._datadir[-32:]):
        assert voter.ask(PROMISE, SECOND).status == 503
        assert voter.store(FIRST.next_version()).status.startswith("503")
        assert node.put(b"plain").status == sysmeta.REFUSED_STATUS
    assert voter.ask(LOOK)[2:6] == (None, False, (), FIRST)


def test_a_state_waits_for_a_promise_of_another_process_and_is_refused(node, voter, paused, other_process):
    def promise():
        other_process.stdin.write("now\n")
        other_process.stdin.close()
        other_process.wait()

    paused.append(promise)
    response = voter.store(FIRST.next_version())
    assert not paused
    assert response.status == sysmeta.REFUSED_STATUS
    assert (response.headers[sysmeta.PROMISED], response.headers[sysmeta.HOME]) == (SECOND.internal, "h2:1")
    assert not node.files()


def test_a_killed_process_holds_no_lock(voter, paused, other_process):
    def kill():
        other_process.kill()
        other_process.wait()

    paused.append(kill)
    assert voter.promise(FIRST) == Promise(None, True)


def test_of_a_promise_and_an_older_state_that_race_only_one_wins(voter):
    """Green threads change where promise and commit wait for the disk."""
    names = [f"a/c/{number}" for number in range(24)]
    stamp = FIRST.next_version()
    for name in names:
        voter.promise(FIRST, name=name)
    stores = [green.start_green(partial(voter.store, stamp, name=name)) for name in names]
    promises = [green.start_green(voter.promise, SECOND, "h2", name) for name in names]
    for store, promise in zip(stores, promises, strict=True):
        stored = sysmeta.STATE_STORED in store.wait().headers
        assert promise.wait() == Promise(stamp if stored else None, True)
