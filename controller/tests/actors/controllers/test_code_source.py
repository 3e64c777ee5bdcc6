"""Where an actor host gets code from: Swift, and then its folder; verified whenever it is read."""

import contextlib
import hashlib

import pytest
from tests.support.actors.host import play

from sluice_actors.controllers.code_source import CodeSource
from sluice_controller.testing.swift_code_store import fake_code_swift
from sluice_core.code.code_store import CodeStore
from sluice_core.errors import NotFound, PeerError, SluiceError
from sluice_core.testing import FakeSwiftCodeStore

CODE = b"class It: pass\n"
SHA256 = hashlib.sha256(CODE).hexdigest()


@pytest.fixture
def swift():
    with fake_code_swift() as server:
        server.code_store().put(SHA256, [CODE], len(CODE))
        yield server


def test_code_is_fetched_once_and_read_from_the_folder_then(swift, tmp_path):
    source = CodeSource(swift.code_store(), CodeStore(tmp_path))
    assert play(source.get(SHA256)) == CODE
    swift.objects.clear()
    assert play(source.get(SHA256)) == CODE


def test_what_was_damaged_in_the_folder_is_fetched_anew(swift, tmp_path):
    source = CodeSource(swift.code_store(), CodeStore(tmp_path))
    play(source.get(SHA256))
    (tmp_path / SHA256).chmod(0o644)
    (tmp_path / SHA256).write_bytes(b"class Other: pass\n")
    with pytest.raises(SluiceError, match="was removed"):
        play(source.get(SHA256))
    assert play(source.get(SHA256)) == CODE


def test_other_bytes_than_were_registered_are_refused(swift, tmp_path):
    for path in swift.objects:
        swift.objects[path] = b"class Other: pass\n"
    with pytest.raises(SluiceError, match="expected `"):
        play(CodeSource(swift.code_store(), CodeStore(tmp_path)).get(SHA256))
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_named(swift, tmp_path):
    with pytest.raises(NotFound, match="there is no code"):
        play(CodeSource(swift.code_store(), CodeStore(tmp_path)).get("0" * 64))
    with pytest.raises(SluiceError, match="given no place for code"):
        play(CodeSource(None, CodeStore(tmp_path)).get("0" * 64))


def test_swift_that_is_away_is_named(swift, tmp_path):
    shelf = swift.code_store()
    swift.shutdown()
    swift.server_close()
    with pytest.raises(PeerError, match="swift at `127"):
        play(CodeSource(shelf, CodeStore(tmp_path)).get(SHA256))


def test_a_folder_that_cannot_be_written_is_named(swift, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SluiceError, match="Not a directory"):
        play(CodeSource(swift.code_store(), CodeStore(tmp_path / "file" / "code")).get(SHA256))


@pytest.mark.parametrize("place", ["", "file/code"])
def test_swift_is_hung_up_on_whether_the_code_can_be_kept_or_not(place, tmp_path):
    (tmp_path / "file").touch()
    shelf = FakeSwiftCodeStore(CODE)
    with contextlib.suppress(SluiceError):
        play(CodeSource(shelf, CodeStore(tmp_path / place)).get(SHA256))
    assert [one.closed for one in shelf.given] == [True]
