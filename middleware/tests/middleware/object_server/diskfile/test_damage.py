"""Damaged disks and missing keys: which files are quarantined, and which must not be."""

import base64
import errno
import json
import os
import random
import time
from types import SimpleNamespace

import pytest
import xattr
from swift.obj.auditor import AuditorWorker
from tests.support.middleware.object_server import CODED, Log, StorageNode, swift_conf

from sluice_core.errors import SluiceError
from sluice_filters.testing.fake_filters import HeadedXor
from sluice_middleware.object_server.diskfile.disk_filters import Unreadable
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY, VERSION, StoredMetadata
from sluice_middleware.swift.diskfile_api import POLICIES, read_metadata, write_metadata

CHAIN = (("compression", {"frame_size": 4096, "min_size": 0}),)
BODY = b"".join(b"%d some line of text\n" % number for number in range(9000))[:150_000]

#: Swift does not close a file that it quarantines while opening it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def node(tmp_path):
    return StorageNode(tmp_path / "node", filters=[HeadedXor])


def flip(path, place, mask=0xFF):
    with open(path, "r+b") as file:
        file.seek(place)
        (value,) = file.read(1)
        file.seek(place)
        file.write(bytes([value ^ mask]))


def audit(node, zero_byte=False):
    worker = AuditorWorker(
        {**node.conf, "conf_path": "/none"},
        Log("object-auditor"),
        str(node.folder / "recon"),
        str(node.folder),
        zero_byte_only_at_fps=100 if zero_byte else 0,
    )
    worker.diskfile_router = node.server._diskfile_router
    worker.last_logged = time.time()  # it resets its counters when it logs
    worker.audit_all_objects()
    return SimpleNamespace(passes=worker.total_files_processed, quarantines=worker.quarantines, errors=worker.errors)


def rewrite(path, change):
    """Change a file's metadata as a faulty program would, including the checksum."""
    with open(path, "r+b") as file:
        found = read_metadata(file)
        change(found)
        for name in xattr.listxattr(file.fileno()):
            xattr.removexattr(file.fileno(), name)
        write_metadata(file, found)


@pytest.mark.parametrize("mask", [0x01, 0x80])
def test_a_flipped_bit_anywhere_quarantines_the_object(node, mask):
    random.seed(7)
    node.put(BODY, *CHAIN)
    (file,) = node.files()
    size = file.stat().st_size
    for place in [0, 5, size // 2, size - 1, *(random.randrange(size) for _ in range(12))]:
        node.put(BODY, *CHAIN)
        (file,) = node.files()
        flip(file, place, mask)
        assert cut(lambda: node.get().body) is None
        assert node.files() == []
        assert node.get().status == "404 Not Found"
    assert len(node.quarantined()) == 16


def cut(request):
    """None when the response was cut off for a damaged disk, as over a socket."""
    try:
        return request()
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return None


def test_damage_is_found_by_a_range_that_needs_it_and_by_no_other(node):
    node.put(BODY, *CHAIN)
    (file,) = node.files()
    flip(file, file.stat().st_size - 3)
    assert node.get("0-9999").body == BODY[:10_000]
    assert node.quarantined() == []
    assert cut(lambda: node.get("140000-149999").body) is None
    assert len(node.quarantined()) == 1


@pytest.mark.parametrize("chain", [CHAIN, ("xor",), (*CHAIN, "xor")], ids=["compression", "xor", "both"])
@pytest.mark.parametrize("policy", [0, CODED])
def test_the_auditor_quarantines_exactly_what_is_damaged(node, chain, policy):
    archive = b"".join(POLICIES[CODED].pyeclib_driver.encode(BODY[:65536])[:1] * 2)
    headers = {
        "X-Object-Sysmeta-Ec-Frag-Index": "0",
        "X-Object-Sysmeta-Ec-Etag": "e",
        "X-Object-Sysmeta-Ec-Content-Length": "65536",
    }
    names = [f"a/c/o{number}" for number in range(8)]
    for name in names:
        node.put(archive if policy else BODY, *chain, name=name, policy=policy, headers=headers)
    assert audit(node).quarantines == 0
    assert audit(node, zero_byte=True).quarantines == 0
    damaged = [file for number, file in enumerate(node.files()) if number % 3 == 0]
    for number, file in enumerate(damaged):
        flip(file, number * 30 + 200)
    found = audit(node)
    assert (found.passes, found.quarantines, found.errors) == (8, len(damaged), 0)
    assert sorted(one.name for one in node.quarantined()) == sorted(file.parent.name for file in damaged)
    assert len(node.files()) == 8 - len(damaged)


@pytest.mark.parametrize("change", [-1, 1], ids=["cut", "grown"])
def test_a_file_of_another_size_than_it_says_is_quarantined_when_it_is_opened(node, change):
    node.put(BODY, *CHAIN)
    (file,) = node.files()
    os.truncate(file, file.stat().st_size + change)
    assert node.request("HEAD").status == "404 Not Found"
    assert len(node.quarantined()) == 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{", "is damaged"),
        ('{"v":1,"size":"5","crc":1,"chain":[{}]}', "is damaged"),
        ('{"v":1,"size":true,"crc":1,"chain":[{}]}', "is damaged"),
        ('{"v":1,"size":7,"crc":1,"chain":[]}', "is damaged"),
        ('{"v":1,"size":7,"crc":null,"chain":[{}]}', "is damaged"),
        ('{"v":1,"size":7,"crc":1,"chain":[{"f":"xor","v":1,"r":{"size":3}}]}', "metadata content-length 150000, `3`"),
    ],
)
def test_an_invalid_metadata_entry_quarantines_the_object(node, caplog, value, reason):
    node.put(BODY, "xor")
    (file,) = node.files()
    rewrite(file, lambda found: found.update({ENTRY: value}))
    assert node.get().status == "404 Not Found"
    assert len(node.quarantined()) == 1
    assert reason in caplog.text


# -- an unreadable file is not a damaged one ---------------------------------------------------------


def key_file(path, *key_ids):
    keys = {key_id: base64.b64encode(key_id.encode().ljust(32)).decode() for key_id in key_ids}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"active": key_ids[-1] if key_ids else "", "keys": keys}))
    fresh.chmod(0o600)
    fresh.replace(path)
    return path


@pytest.fixture
def keys(tmp_path):
    return key_file(tmp_path / "keys.json", "old", "new")


@pytest.fixture
def keyed(tmp_path, keys):
    return StorageNode(tmp_path / "keyed", {"sluice_key_file": str(keys)})


def reopened(node, **options):
    return StorageNode(node.folder, {**node.options, **options}, node.filters, node.clock)


def test_an_encrypted_object_is_readable_with_the_key(keyed):
    keyed.put(BODY, "compression", ("encryption", {"key": "old"}))
    (file,) = keyed.files()
    assert keyed.stored(file).filters() == ("compression", "encryption")
    assert b"some line" not in file.read_bytes()
    assert keyed.get().body == BODY
    assert keyed.get("70000-70009").body == BODY[70_000:70_010]
    assert audit(keyed).quarantines == 0
    flip(file, 1000)
    assert audit(keyed).quarantines == 1


def test_without_the_key_only_the_body_is_refused_and_nothing_is_quarantined(keyed, keys):
    keyed.put(BODY, ("encryption", {"key": "old"}), headers={"X-Object-Meta-A": "1"})
    keyed.put(BODY, ("encryption", {"key": "new"}), name="a/c/other")
    key_file(keys, "new")
    locked = reopened(keyed)
    for byte_range in ("", "5-9", "0-1,5-9"):
        answer = locked.get(byte_range)
        assert answer.status == "409 Refused by Sluice"
        assert answer.headers["X-Backend-Sluice-Refused"] == answer.body.decode()
        assert answer.body.startswith(b"no key `old` in key file")
    assert locked.get(name="a/c/other").body == BODY
    head = locked.request("HEAD")
    assert (head.status, head.headers["X-Object-Meta-A"]) == ("200 OK", "1")
    assert locked.request("POST", headers={"X-Object-Meta-A": "2"}).status == "202 Accepted"
    assert locked.quarantined() == []
    key_file(keys, "old", "new")
    found = reopened(keyed).get()
    assert (found.body, found.headers["X-Object-Meta-A"]) == (BODY, "2")
    key_file(keys, "new")
    assert reopened(locked).request("DELETE").status == "204 No Content"


def test_the_auditor_skips_files_without_a_key_and_logs_it(keyed, keys, caplog):
    for number in range(11):
        keyed.put(BODY, ("encryption", {"key": "old"}), name=f"a/c/o{number}")
    keyed.put(BODY, ("encryption", {"key": "new"}), name="a/c/other")
    key_file(keys, "new")
    locked = reopened(keyed)
    found = audit(locked)
    assert (found.passes, found.quarantines, found.errors) == (12, 0, 0)
    assert len(locked.files()) == 12
    assert locked.log.counts["sluice.not_audited"] == 11
    told = [line for line in caplog.messages if "not audited" in line]
    assert [line.split()[1] for line in told] == ["1", "10"]
    assert "no key `old`" in told[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda found: {**found, "v": VERSION + 1}, f"written by disk files of version {VERSION + 1}"),
        (lambda found: {**found, "chain": [{**found["chain"][0], "f": "gone"}]}, "filter `gone` is not installed"),
        (lambda found: {**found, "chain": [{**found["chain"][0], "v": 9}]}, "filter `xor` of version 9 is needed"),
    ],
)
def test_a_file_of_a_newer_version_is_refused_and_kept(node, change, reason):
    node.put(BODY, "xor")
    (file,) = node.files()
    rewrite(file, lambda found: found.update({ENTRY: json.dumps(change(json.loads(found[ENTRY])))}))
    answer = node.get()
    assert answer.status == "409 Refused by Sluice"
    assert answer.headers["X-Backend-Sluice-Refused"].startswith(reason)
    assert node.request("HEAD").status == "200 OK"
    assert audit(node).quarantines == 0
    assert node.files() == [file]


def test_an_unreadable_file_ends_a_senders_session_without_a_disk_file_error(keyed, keys):
    keyed.put(BODY, ("encryption", {"key": "old"}))
    key_file(keys, "new")
    locked = reopened(keyed)
    disk_file = locked.manager().get_diskfile("sda", "0", "a", "c", "o", POLICIES[0])
    with disk_file.open(), pytest.raises(Unreadable, match="no key `old`"):
        disk_file.reader()


def test_unreadable_files_are_offered_last_to_ssync(keyed, keys):
    for number in range(6):
        keyed.put(BODY, ("encryption", {"key": "old" if number % 2 else "new"}), name=f"a/c/o{number}")
    key_file(keys, "new")
    locked = reopened(keyed)
    hashes = [found for found, _ in locked.manager().yield_hashes("sda", "0", POLICIES[0])]
    by_hash = {file.parent.name: locked.stored(file).records[0]["r"] for file in locked.files()}
    readable = [not json.dumps(by_hash[one]).count('"old"') for one in hashes]
    assert readable == [True] * 3 + [False] * 3


def test_a_metadata_entry_round_trips():
    stored = StoredMetadata(7, 99, ({"f": "xor", "v": 1, "r": {"size": 6}},))
    assert StoredMetadata.decode(stored.encode()) == stored
    assert stored.plain_size() == 6
    assert StoredMetadata.decode(json.dumps({"v": VERSION + 1, "size": 9, "form": "new"})).plain_size() is None


@pytest.mark.parametrize(
    "options",
    [{"sluice_key_fiel": "x"}, {"sluice_key_file": "/a", "sluice_key_manager_conf": "/b"}],
)
def test_options_that_cannot_be_used_keep_the_server_from_starting(tmp_path, options):
    with pytest.raises(SluiceError, match="sluice_key_fil"):
        StorageNode(tmp_path, options)
