"""The sources of code for an actor host: Swift, and then its folder; verified at each read."""

import contextlib
import hashlib

import pytest
from tests.support.actors.host import run_scenario
from tests.support.controller.swift_code_store import fake_code_swift

from sluice_actors.controllers.uploads import CodeSource
from sluice_code.code_store import CodeStore
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
    assert run_scenario(source.get(SHA256)) == CODE
    swift.objects.clear()
    assert run_scenario(source.get(SHA256)) == CODE


def test_damaged_code_is_fetched_again(swift, tmp_path):
    source = CodeSource(swift.code_store(), CodeStore(tmp_path))
    run_scenario(source.get(SHA256))
    (tmp_path / SHA256).chmod(0o644)
    (tmp_path / SHA256).write_bytes(b"class Other: pass\n")
    with pytest.raises(SluiceError, match="was removed"):
        run_scenario(source.get(SHA256))
    assert run_scenario(source.get(SHA256)) == CODE


def test_code_with_another_checksum_is_refused(swift, tmp_path):
    for path in swift.objects:
        swift.objects[path] = b"class Other: pass\n"
    with pytest.raises(SluiceError, match="expected `"):
        run_scenario(CodeSource(swift.code_store(), CodeStore(tmp_path)).get(SHA256))
    assert list(tmp_path.iterdir()) == []


def test_missing_code_is_reported(swift, tmp_path):
    with pytest.raises(NotFound, match="there is no code"):
        run_scenario(CodeSource(swift.code_store(), CodeStore(tmp_path)).get("0" * 64))
    with pytest.raises(SluiceError, match="given no place for code"):
        run_scenario(CodeSource(None, CodeStore(tmp_path)).get("0" * 64))


def test_an_unreachable_swift_is_reported(swift, tmp_path):
    shelf = swift.code_store()
    swift.shutdown()
    swift.server_close()
    with pytest.raises(PeerError, match="swift at `127"):
        run_scenario(CodeSource(shelf, CodeStore(tmp_path)).get(SHA256))


def test_a_folder_that_cannot_be_written_is_reported(swift, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SluiceError, match="Not a directory"):
        run_scenario(CodeSource(swift.code_store(), CodeStore(tmp_path / "file" / "code")).get(SHA256))


@pytest.mark.parametrize("place", ["", "file/code"])
def test_the_connection_to_swift_is_closed_in_any_case(place, tmp_path):
    (tmp_path / "file").touch()
    shelf = FakeSwiftCodeStore(CODE)
    with contextlib.suppress(SluiceError):
        run_scenario(CodeSource(shelf, CodeStore(tmp_path / place)).get(SHA256))
    assert [one.closed for one in shelf.given] == [True]
