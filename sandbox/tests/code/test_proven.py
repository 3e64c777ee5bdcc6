"""Marks beside code, and the uploads that a process loads because of them."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace

import pytest

from sluice_code.code_store import BadUpload, CodeStore
from sluice_code.proven import ProvenCode
from sluice_core.errors import PeerError
from sluice_core.messages.uploads import Upload

ONE, TWO, THREE = b"one", b"two", b"three"


def digest(code):
    return hashlib.sha256(code).hexdigest()


def uploaded(code=ONE, keyword="shout", **more):
    return Upload(keyword, "native", "python", "Shout", digest(code), len(code), **more)


def succeeded(old, code):
    revisions = (old.current, *old.revisions)
    return replace(old, sha256=digest(code), size=len(code), revision=old.revision + 1, revisions=revisions)


@pytest.fixture
def store(tmp_path):
    made = CodeStore(tmp_path / "code")
    for code in (ONE, TWO, THREE):
        made.add(code, digest(code))
    return made


class Host:
    """Loads code as its own text; code in ``broken`` cannot be loaded."""

    def __init__(self, store, taken=()):
        self.loads = []
        self.broken = set()
        self.store = store
        self.code = ProvenCode("filter", store, self.load, logging.getLogger("host"), taken)

    def load(self, upload, code):
        self.loads.append(code)
        if code in self.broken:
            raise BadUpload("line 7: no such thing here")
        return f"{code.decode()} {upload.revision}"

    def prove(self, *codes):
        for code in codes:
            self.store.mark_proven(digest(code), "filter", "Shout")


@pytest.fixture
def host(store):
    return Host(store)


def test_a_mark_is_of_one_digest_kind_and_class_and_outlives_its_store(store):
    assert not store.is_proven(digest(ONE), "filter", "Shout")
    store.mark_proven(digest(ONE), "filter", "Shout")
    store.mark_proven(digest(ONE), "filter", "Shout")
    again = CodeStore(store.folder)
    assert again.is_proven(digest(ONE), "filter", "Shout")
    others = [(TWO, "filter", "Shout"), (ONE, "metric", "Shout"), (ONE, "filter", "Whisper"), (ONE, "filter", "")]
    assert not any(again.is_proven(digest(code), kind, main) for code, kind, main in others)
    again.unmark_proven(digest(ONE), "filter", "Shout")
    again.unmark_proven(digest(ONE), "filter", "Shout")
    assert not store.is_proven(digest(ONE), "filter", "Shout")


def test_a_mark_without_its_code_proves_nothing(store):
    store.mark_proven(digest(ONE), "filter", "Shout")
    store.path(digest(ONE)).unlink()
    assert not store.is_proven(digest(ONE), "filter", "Shout")


def test_a_class_may_have_any_name(store):
    name = "É" * 400
    store.mark_proven(digest(ONE), "filter", name)
    assert store.is_proven(digest(ONE), "filter", name)


def test_code_is_taken_once_it_is_proven_and_goes_with_its_registration(host):
    uploads = (uploaded(),)
    assert not host.code.update(uploads)
    assert host.code.found == {}
    host.prove(ONE)
    assert host.code.update(uploads)
    assert host.code.found == {"shout": "one 1"}
    assert not host.code.update(uploads)
    assert host.code.update(())
    assert host.code.found == {}


def test_the_newest_proven_revision_is_in_use_and_a_newer_one_takes_its_place(host):
    host.prove(ONE)
    second = succeeded(uploaded(), TWO)
    third = succeeded(second, THREE)
    host.code.update((third,))
    assert host.code.found == {"shout": "one 1"}
    host.prove(TWO)
    assert host.code.update((third,))
    assert host.code.found == {"shout": "two 2"}
    host.prove(THREE)
    host.code.update((third,))
    assert host.code.found == {"shout": "three 3"}
    assert host.loads == [ONE, TWO, THREE]


def test_a_revision_that_fails_here_leaves_the_one_before_in_place_and_is_said_once(host, caplog):
    host.prove(ONE, TWO)
    host.broken.add(TWO)
    first = uploaded()
    host.code.update((first,))
    newer = (succeeded(first, TWO),)
    for _ in range(3):
        assert not host.code.update(newer)
    assert host.code.found == {"shout": "one 1"}
    assert host.loads == [ONE, TWO]
    said = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert said == ["sluice: uploaded filter `shout`: revision 2 is left out: line 7: no such thing here"]


def test_a_process_that_starts_with_a_revision_that_fails_takes_the_one_before(host):
    host.prove(ONE, TWO)
    host.broken.add(TWO)
    assert host.code.update((succeeded(uploaded(), TWO),))
    assert host.code.found == {"shout": "one 1"}


def test_code_that_was_changed_on_the_disk_is_not_loaded(host, caplog):
    host.prove(ONE)
    path = host.store.path(digest(ONE))
    path.unlink()
    path.write_bytes(b"something else")
    assert not host.code.update((uploaded(),))
    assert host.loads == []
    assert "SHA-256" in caplog.text


@pytest.mark.parametrize(
    "one",
    [
        uploaded(kind="metric"),
        replace(uploaded(), environment="wasm"),
        uploaded(running=False),
        replace(uploaded(), sha256="", size=0),
        uploaded(keyword="taken"),
    ],
    ids=["another kind", "isolated", "not running", "without code", "taken"],
)
def test_what_is_not_for_this_host_is_passed_over(store, one):
    host = Host(store, taken={"taken"})
    host.prove(ONE)
    assert not host.code.update((one,))
    assert host.loads == []


def test_a_folder_that_cannot_be_read_is_said_and_ends_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    store = CodeStore(tmp_path / "file" / "code")
    assert not store.has(digest(ONE))
    with pytest.raises(PeerError, match="cannot be read on this node: Not a directory"):
        store.read(digest(ONE))

    def denied(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.is_file", denied)
    assert not Host(store).code.update((uploaded(),))


def test_what_makes_no_difference_to_the_code_loads_nothing_anew(host):
    host.prove(ONE)
    first = uploaded()
    host.code.update((first,))
    assert not host.code.update((replace(first, self_service=True, created_by="somebody"),))
    assert host.loads == [ONE]


def test_going_back_is_a_new_revision_of_the_old_code(host):
    host.prove(ONE, TWO)
    second = succeeded(uploaded(), TWO)
    host.code.update((second,))
    assert host.code.update((succeeded(second, ONE),))
    assert host.code.found == {"shout": "one 3"}
