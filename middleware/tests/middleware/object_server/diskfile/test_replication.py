"""Copies of transformed objects: rsync carries files unchanged, SSYNC and the reconstructor plain bytes."""

import base64
import json
import os
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.support.middleware.object_server import CODED, StorageNode, swift_conf

from sluice_filters.testing.fake_filters import HeadedXor
from sluice_middleware.swift.diskfile_api import POLICIES
from sluice_middleware.wsgi import sysmeta

#: Swift's sender does not close files that it opens only for their metadata.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

BODY = b"".join(b"%d some line of text\n" % number for number in range(9000))


class OnlyHere(HeadedXor):
    """A filter that is installed on one node only."""

    info = replace(HeadedXor.info, keyword="only_here")


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def pair(tmp_path):
    return [StorageNode(tmp_path / name, filters=[HeadedXor]) for name in ("left", "right")]


def test_ssync_sends_plain_bytes_and_the_other_node_encodes_them_anew(pair, ssync):
    left, right = pair
    left.put(BODY, "compression", "xor", headers={"X-Object-Meta-A": "1", "X-Delete-At": "9999999999"})
    left.put(b"plain", name="a/c/plain")
    left.put(b"", "compression", name="a/c/empty")
    left.request("POST", headers={"X-Object-Meta-B": "2"})
    success, deletable = ssync(left, right)
    assert success
    assert len(deletable) == 3
    for name, body in (("a/c/o", BODY), ("a/c/plain", b"plain"), ("a/c/empty", b"")):
        ours, theirs = left.get(name=name), right.get(name=name)
        assert theirs.body == body
        assert dict(ours.headers) == dict(theirs.headers)
    forms = [[node.stored(file) and node.stored(file).filters() for file in node.files()] for node in pair]
    assert forms[0] == forms[1]
    assert ("compression", "xor") in forms[1]
    assert [file.name for file in left.files()] == [file.name for file in right.files()]
    hashes = [node.manager().get_hashes("sda", "0", [], POLICIES[0]) for node in pair]
    assert hashes[0] == hashes[1]
    assert ssync(left, right)[0]


def test_two_encrypted_copies_are_as_different_as_two_objects(tmp_path, ssync):
    keys = key_file(tmp_path / "keys", "old")
    left, right = (StorageNode(tmp_path / name, {"sluice_key_file": str(keys)}) for name in ("left", "right"))
    left.put(BODY, "encryption")
    assert ssync(left, right)[0]
    (ours,), (theirs,) = left.files(), right.files()
    assert ours.read_bytes() != theirs.read_bytes()
    assert left.stored(ours).records != right.stored(theirs).records
    assert right.get().body == BODY


def key_file(path, *key_ids):
    keys = {key_id: base64.b64encode(key_id.encode().ljust(32)).decode() for key_id in key_ids}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"active": key_ids[-1] if key_ids else "", "keys": keys}))
    fresh.chmod(0o600)
    fresh.replace(path)
    return path


def test_a_receiver_that_cannot_encode_stores_no_plain_bytes(tmp_path, ssync):
    left = StorageNode(tmp_path / "left", filters=[OnlyHere])
    right = StorageNode(tmp_path / "right")
    left.put(BODY, "only_here")
    left.put(BODY, "compression", name="a/c/other")
    success, deletable = ssync(left, right)
    assert (success, deletable) == (False, {})
    assert right.get().status == "404 Not Found"
    assert right.get(name="a/c/other").body == BODY
    assert len(right.files()) == 1


def test_a_sender_without_the_key_sends_the_others_and_deletes_nothing(tmp_path, ssync):
    """A handoff partition is deleted as a whole after a success: then the only copy could be lost."""
    keys = key_file(tmp_path / "keys", "old", "new")
    options = {"sluice_key_file": str(keys)}
    left, right = (StorageNode(tmp_path / name, options) for name in ("left", "right"))
    for number in range(8):
        left.put(BODY, ("encryption", {"key": "old" if number % 2 else "new"}), name=f"a/c/o{number}")
    key_file(keys, "new")
    locked = StorageNode(tmp_path / "left", options, clock=left.clock)
    assert ssync(locked, right) == (False, {})
    statuses = [right.get(name=f"a/c/o{number}").status[:3] for number in range(8)]
    assert statuses == ["200", "404"] * 4
    assert len(locked.files()) == 8
    key_file(keys, "old", "new")
    left = StorageNode(tmp_path / "left", options, clock=left.clock)
    success, deletable = ssync(left, right)
    assert success
    assert len(deletable) == 8
    assert [right.get(name=f"a/c/o{number}").body for number in range(8)] == [BODY] * 8


def test_a_hash_dir_copied_by_rsync_is_read_there(pair):
    left, right = pair
    left.put(BODY, "compression", "xor")
    left.request("POST", headers={"X-Object-Meta-B": "2"})
    (file,) = left.files()
    target = right.folder / file.parent.parent.relative_to(left.folder)
    target.mkdir(parents=True)
    arguments = ["rsync", "--recursive", "--whole-file", "--xattrs", "--ignore-existing"]
    subprocess.run([*arguments, f"{file.parent}", f"{target}/"], check=True, timeout=60)
    (copy,) = right.files()
    assert copy.read_bytes() == file.read_bytes()
    assert right.stored(copy) == left.stored(file)
    assert (right.get().body, right.get().headers["X-Object-Meta-B"]) == (BODY, "2")
    assert right.get("70000-70009").body == BODY[70_000:70_010]


# -- erasure coding -----------------------------------------------------------------------------------


def archives(data):
    policy = POLICIES[CODED]
    size = policy.ec_segment_size
    rows = [policy.pyeclib_driver.encode(data[at : at + size]) for at in range(0, len(data), size)]
    return [b"".join(row[index] for row in rows) for index in range(3)]


def put_fragment(node, index, archive, *chain):
    headers = {
        "X-Object-Sysmeta-Ec-Frag-Index": str(index),
        "X-Object-Sysmeta-Ec-Etag": "of the object",
        "X-Object-Sysmeta-Ec-Content-Length": str(len(BODY)),
        "X-Object-Sysmeta-Ec-Scheme": "liberasurecode_rs_vand 2+1",
    }
    answer = node.put(archive, *chain, policy=CODED, headers=headers)
    assert answer.status == "201 Created"


def test_a_misplaced_fragment_is_reverted_to_its_primary(pair, ssync):
    left, right = pair
    archive = archives(BODY)[1]
    put_fragment(left, 1, archive, "compression", "xor")
    success, deletable = ssync(left, right, CODED, job={"frag_index": 1}, place={"backend_index": 1})
    assert success
    assert len(deletable) == 1
    (copy,) = right.files()
    assert copy.name.endswith("#1#d.data")
    assert right.stored(copy).filters() == left.stored(left.files()[0]).filters()
    assert right.get(policy=CODED).body == archive


def rebuilding(builder):
    """A job of the sender's fragment 0 whose receiver is the place of fragment 2."""
    job = {"frag_index": 0, "sync_diskfile_builder": builder}
    return {"policy": CODED, "job": job, "place": {"backend_index": 2}}


def test_a_rebuilt_fragment_is_encoded_by_the_node_that_gets_it(pair, ssync):
    """The reconstructor sends a stream that it rebuilt, under the metadata of its own fragment."""
    left, right = pair
    mine, _, lost = archives(BODY)
    put_fragment(left, 0, mine, "xor")

    def rebuilt(job, place, disk_file):
        found = dict(disk_file.get_datafile_metadata())
        found["X-Object-Sysmeta-Ec-Frag-Index"] = "2"
        found.pop("ETag")
        assert sysmeta.NODE in found
        return SimpleNamespace(
            content_length=len(lost),
            get_datafile_metadata=lambda: found,
            reader=lambda: iter([lost[:1000], lost[1000:]]),
        )

    success, _ = ssync(left, right, **rebuilding(rebuilt))
    assert success
    (copy,) = right.files()
    assert copy.name.endswith("#2#d.data")
    assert right.stored(copy).filters() == ("xor",)
    assert right.get(policy=CODED).body == lost


def test_a_missing_key_does_not_keep_a_fragment_from_being_rebuilt_elsewhere(tmp_path, ssync):
    keys = key_file(tmp_path / "keys", "old", "new")
    options = {"sluice_key_file": str(keys)}
    left, right = (StorageNode(tmp_path / name, options) for name in ("left", "right"))
    mine, _, lost = archives(BODY)
    put_fragment(left, 0, mine, "encryption")
    key_file(keys, "old")
    locked = StorageNode(tmp_path / "left", options, clock=left.clock)

    def rebuilt(job, place, disk_file):
        found = {name: value for name, value in disk_file.get_datafile_metadata().items() if name != "ETag"}
        return SimpleNamespace(
            content_length=len(lost),
            get_datafile_metadata=lambda: {**found, "X-Object-Sysmeta-Ec-Frag-Index": "2"},
            reader=lambda: iter([lost]),
        )

    success, _ = ssync(locked, right, **rebuilding(rebuilt))
    assert success
    assert right.get(policy=CODED).body == lost


def test_a_hard_link_in_another_partition_is_the_same_object(pair):
    """The effect of the relinker, and of a PUT during an increase of the partition power."""
    node = pair[0]
    node.put(BODY, "compression")
    (file,) = node.files()
    other = node.folder / "sda" / "objects" / "1" / file.parent.parent.name / file.parent.name
    other.mkdir(parents=True)
    os.link(file, other / file.name)
    disk_file = node.manager().get_diskfile("sda", "1", "a", "c", "o", POLICIES[0])
    with disk_file.open():
        reader = disk_file.reader()
    assert b"".join(reader) == BODY
    reader.close()
