"""Removal of Sluice from a node: ``sluice-diskfile`` finds transformed files and makes them plain.

``scan``, ``show`` and ``unwind`` are used as docs/admin/storage-nodes.md shows them.
"""

import base64
import json
import os
import shutil

import pytest
from swift.obj.diskfile import DiskFileManager as StockManager
from swift.obj.diskfile import ECDiskFileManager as StockECManager
from tests.support.middleware.object_server import CODED, StorageNode, swift_conf

from sluice_middleware.object_server.diskfile import rewrite as diskfile_rewrite
from sluice_middleware.object_server.diskfile.cli import WriteRateLimit, main
from sluice_middleware.object_server.diskfile.rewrite import (
    DAMAGED,
    GONE,
    PLAIN,
    REWRITTEN,
    TRANSFORMED,
    data_files,
    inspect,
    rewrite,
)
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY
from sluice_middleware.swift.diskfile_api import POLICIES, read_metadata
from sluice_middleware.wsgi import sysmeta

BODY = b"".join(b"%d some line of text\n" % number for number in range(9000))


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


def key_file(path, *key_ids):
    keys = {key_id: base64.b64encode(key_id.encode().ljust(32)).decode() for key_id in key_ids}
    path.write_text(json.dumps({"active": key_ids[-1], "keys": keys}))
    path.chmod(0o600)
    return path


@pytest.fixture
def keys(tmp_path):
    return key_file(tmp_path / "keys.json", "old", "new")


@pytest.fixture
def node(tmp_path, keys):
    return StorageNode(tmp_path / "node", {"sluice_key_file": str(keys)})


@pytest.fixture
def command(tmp_path, node, keys, capsys):
    """Run ``sluice-diskfile``; return its exit status and its output."""
    config = tmp_path / "object-server.conf"
    config.write_text(f"[DEFAULT]\ndevices = {node.folder}\nsluice_key_file = {keys}\nlog_name = 100%\n")

    def run(*arguments):
        code = main(["--config", str(config), *map(str, arguments)])
        return code, capsys.readouterr()

    return run


def stock_manager(node, policy):
    return (StockECManager if policy == CODED else StockManager)(node.conf, node.log)


def stock_read(node, name="o", policy=0):
    disk_file = stock_manager(node, policy).get_diskfile("sda", "0", "a", "c", name, POLICIES[policy])
    with disk_file.open():
        found = disk_file.get_metadata()
        reader = disk_file.reader()
    body = b"".join(reader)
    reader.close()
    return body, found


def fragments():
    policy = POLICIES[CODED]
    size = policy.ec_segment_size
    return b"".join(policy.pyeclib_driver.encode(BODY[at : at + size])[2] for at in range(0, len(BODY), size))


FRAGMENT = {
    "X-Object-Sysmeta-Ec-Frag-Index": "2",
    "X-Object-Sysmeta-Ec-Etag": "e",
    "X-Object-Sysmeta-Ec-Content-Length": str(len(BODY)),
}


def fill(node):
    node.put(BODY, "compression", ("encryption", {"key": "old"}), headers={"X-Object-Meta-A": "1"})
    node.request("POST", headers={"X-Object-Meta-B": "2"})
    node.put(BODY, "compression", name="a/c/compressed")
    node.put(b"as ever", name="a/c/plain")
    node.put(fragments(), "compression", policy=CODED, headers=FRAGMENT)


def test_after_unwinding_stock_swift_reads_everything(node, command):
    fill(node)
    before = {path: os.stat(path) for path in node.files()}
    hashes = [node.manager(policy).get_hashes("sda", "0", [], POLICIES[policy]) for policy in (0, CODED)]
    code, said = command("unwind", "sda")
    assert code == 0
    assert f"{node.folder / 'sda'}: 4 files, 0 transformed, 3 rewritten, 0 unreadable, 0 damaged, 0 gone" in said.out
    body, found = stock_read(node)
    assert body == BODY
    assert (found["X-Object-Meta-B"], ENTRY in found, sysmeta.NODE in found) == ("2", False, False)
    assert stock_read(node, "compressed")[0] == BODY
    assert stock_read(node, "plain")[0] == b"as ever"
    assert stock_read(node, policy=CODED)[0] == fragments()
    assert list(before) == node.files()
    for path, old in before.items():
        new = os.stat(path)
        assert (new.st_mode, new.st_uid, new.st_gid, new.st_mtime_ns) == (
            old.st_mode,
            old.st_uid,
            old.st_gid,
            old.st_mtime_ns,
        )
        assert new.st_size == int(read_metadata(str(path))["Content-Length"])
    assert hashes == [
        stock_manager(node, policy).get_hashes("sda", "0", list(found), POLICIES[policy])
        for policy, found in zip((0, CODED), hashes, strict=True)
    ]
    assert node.get().body == BODY
    assert not list(node.folder.glob("*/tmp*/*"))


def test_unwinding_again_changes_nothing(node, command):
    fill(node)
    command("unwind", "sda")
    before = {path: os.stat(path).st_ino for path in node.files()}
    code, said = command("unwind", "sda", "sdb")
    assert (code, said.out.count("0 rewritten")) == (0, 2)
    assert before == {path: os.stat(path).st_ino for path in node.files()}


def test_a_dry_run_and_a_scan_count_and_change_nothing(node, command):
    fill(node)
    before = {path: path.read_bytes() for path in node.files()}
    for arguments, expected in ((("scan",), 0), (("unwind", "--dry-run"), 1)):
        code, said = command(*arguments, node.folder / "sda")
        assert code == expected
        assert "4 files, 3 transformed, 0 rewritten" in said.out
        assert "    2 by compression\n    1 by compression+encryption\n" in said.out
    assert before == {path: path.read_bytes() for path in node.files()}


def test_an_unreadable_file_stays_and_is_named(node, command, keys):
    fill(node)
    key_file(keys, "new")
    (locked,) = (path for path in node.files() if (found := node.stored(path)) and "encryption" in found.filters())
    code, said = command("unwind", "sda")
    assert code == 1
    assert "0 transformed, 2 rewritten, 1 unreadable" in said.out
    assert "no key `old`" in said.out
    assert f"unreadable {locked}" in said.out
    key_file(keys, "old", "new")
    assert command("unwind", "sda")[0] == 0
    assert stock_read(node)[0] == BODY


def test_a_damaged_file_is_left_to_the_auditor(node, command):
    fill(node)
    for number, path in enumerate(path for path in node.files() if node.stored(path)):
        with open(path, "r+b") as file:
            if number:
                file.seek(900)
                file.write(b"\0\xff\0\xff")
            else:
                file.truncate(5)
    code, said = command("unwind", "sda")
    assert code == 1
    assert "0 rewritten, 0 unreadable, 3 damaged" in said.out
    assert not list(node.folder.glob("*/tmp*/*"))


def swapping(monkeypatch, act):
    """Let ``act`` run once just before names are exchanged."""
    real = diskfile_rewrite._exchange
    left = [act]

    def exchange(one, other):
        if left:
            left.pop()()
        real(one, other)

    monkeypatch.setattr(diskfile_rewrite, "_exchange", exchange)


def test_an_object_deleted_during_a_rewrite_stays_deleted(node, monkeypatch):
    node.put(BODY, "compression")
    (path,) = node.files()
    swapping(monkeypatch, lambda: node.request("DELETE"))
    assert rewrite(path, node.manager().disk_filters).state == GONE
    assert node.files() == []
    assert node.get().status == "404 Not Found"


def test_an_object_replaced_during_a_rewrite_stays_replaced(node, monkeypatch):
    node.put(BODY, "compression")
    (path,) = node.files()
    swapping(monkeypatch, lambda: node.put(b"newer"))
    assert rewrite(path, node.manager().disk_filters).state == GONE
    assert node.get().body == b"newer"
    assert len(node.files()) == 1


def test_a_new_file_under_the_same_name_is_kept(node, monkeypatch):
    node.put(BODY, "compression")
    (path,) = node.files()

    def copy_anew():
        shutil.copy2(path, path.with_name("fresh"))
        os.replace(path.with_name("fresh"), path)

    swapping(monkeypatch, copy_anew)
    assert rewrite(path, node.manager().disk_filters).state == GONE
    assert inspect(path, node.manager().disk_filters).state == TRANSFORMED
    assert node.get().body == BODY


def test_a_reader_continues_while_its_file_is_rewritten(node):
    node.put(BODY, "compression")
    (path,) = node.files()
    disk_file = node.manager().get_diskfile("sda", "0", "a", "c", "o", POLICIES[0])
    with disk_file.open():
        reader = disk_file.reader()
    pieces = iter(reader)
    begin = next(pieces)
    assert rewrite(path, node.manager().disk_filters).state == REWRITTEN
    assert begin + b"".join(pieces) == BODY
    assert inspect(path, node.manager().disk_filters).state == PLAIN


def test_show_prints_all_metadata_of_a_file(node, command):
    node.put(BODY, "compression")
    (path,) = node.files()
    code, said = command("show", path)
    known = json.loads(said.out)
    assert code == 0
    assert (known["state"], known["stored"]["size"]) == (TRANSFORMED, path.stat().st_size)
    assert known["metadata"]["Content-Length"] == str(len(BODY))
    os.truncate(path, 3)
    assert json.loads(command("show", path)[1].out)["state"] == DAMAGED


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(("scan", "nowhere"), "is no folder"), (("show", "/none/file.data"), "there is no file `/none/file.data`")],
)
def test_a_missing_file_or_device_is_an_error(node, command, arguments, complaint):
    code, said = command(*arguments)
    assert code == 1
    assert complaint in said.err


def test_an_unreadable_configuration_is_an_error(tmp_path, capsys):
    assert main(["--config", str(tmp_path / "none"), "scan", "/"]) == 1
    assert "cannot read" in capsys.readouterr().err


def test_data_files_are_listed_in_a_fixed_order(node):
    for number in range(5):
        node.put(BODY, name=f"a/c/o{number}")
    found = list(data_files(node.folder / "sda"))
    assert found == sorted(found)
    assert len(found) == 5


def test_a_rewrite_keeps_to_its_rate_limit(monkeypatch):
    slept = []
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("time.sleep", slept.append)
    pace = WriteRateLimit(1000)
    pace(500)
    clock[0] = 102.0
    pace(500)
    assert slept == [0.5]
    WriteRateLimit(0)(10**9)
    assert slept == [0.5]
