"""A host's dictionary of filters while registrations are added, changed and deleted."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace

import pytest
from tests.support.sandbox.process import compiled, upload

from sluice_code.code_store import CodeStore
from sluice_core.messages.uploads import Upload
from sluice_filters.api import Hint, HostServices
from sluice_filters.basic.noop import Noop
from sluice_filters.chain import ChainEncoder, chain_decoder
from sluice_filters.testing import run
from sluice_sandbox.hosting import OPTIONS, InstalledFilters

log = logging.getLogger(__name__)
XOR = compiled("xor")


@pytest.fixture
def store(tmp_path):
    return CodeStore(tmp_path / "code")


@pytest.fixture
def installed(store):
    options = {option.name: option.default for option in OPTIONS} | {"code_dir": str(store.folder)}
    return InstalledFilters({"noop": Noop}, options, log)


def registered(keyword="scramble", code=XOR, **more):
    return upload(code, keyword, "", "wasm", "wasm", reverse=True, **more)


def test_a_filter_comes_with_its_code_and_goes_with_its_registration(installed, store):
    filters = installed.filters
    one = registered()
    uploads = (one,)
    assert not installed.update(uploads)
    assert "scramble" not in filters
    store.add(XOR, one.sha256)
    assert installed.update(uploads)
    assert not installed.update(uploads)
    assert filters["scramble"].info.version == 1
    encoder = ChainEncoder([filters["scramble"]()], Hint(size=5))
    stored = run(encoder, [b"hello"])
    assert stored != b"hello"
    assert run(chain_decoder(encoder.records(), filters), [stored]) == b"hello"
    assert installed.update(())
    assert set(filters) == {"noop"}
    assert filters is installed.filters


def test_another_revision_replaces_the_class_and_others_stay(installed, store):
    first, other = registered(), registered("other")
    store.add(XOR, first.sha256)
    installed.update((first, other))
    kept = installed.filters["other"]
    assert installed.update((replace(first, revision=2), other))
    assert installed.filters["scramble"].info.version == 2
    assert installed.filters["other"] is kept


def test_registrations_without_code_or_with_a_built_in_keyword_are_ignored(installed):
    assert not installed.update((replace(registered(), sha256="", size=0), registered("noop")))
    assert installed.filters == {"noop": Noop}


def test_an_upload_that_this_node_cannot_run_is_logged_once(installed, store, caplog):
    good = registered()
    store.add(XOR, good.sha256)
    bad = upload(b"x", "jailed", "X", "process", "python")
    absent = registered("absent", b"gone")
    for _ in range(3):
        installed.update((bad, absent, good))
    assert set(installed.filters) == {"noop", "scramble"}
    assert [one.getMessage() for one in caplog.records] == [
        "sluice: uploaded filter `jailed` is left out: environment `process` is not set up on this node",
        f"sluice: uploaded filter `absent` is left out: code `{absent.sha256}` is not on this node",
    ]


def test_a_revision_whose_code_has_not_come_leaves_the_one_before_in_use_also_after_a_restart(installed, store):
    first = registered()
    store.add(XOR, first.sha256)
    second = replace(first, sha256="0" * 64, revision=2, revisions=(first.current,))
    assert installed.update((second,))
    assert installed.filters["scramble"].info.version == 1
    uploads = (second,)
    installed.update(uploads)
    assert not installed.update(uploads)
    assert installed.filters["scramble"].info.version == 1


NATIVE = b"""
from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import Filter

class Mine(Filter):
    info = ActionInfo("mine", FILTER, "help")
"""


def native(code=NATIVE, **more):
    sha256 = hashlib.sha256(code).hexdigest()
    return Upload("mine", "native", "python", "Mine", sha256, len(code), **more)


def test_a_native_filter_comes_when_it_is_proven_and_is_lent_what_ours_are(store):
    options = {option.name: option.default for option in OPTIONS} | {"code_dir": str(store.folder)}
    lent = HostServices()
    installed = InstalledFilters({"noop": Noop}, options, log, surroundings=lent)
    one = native()
    store.add(NATIVE, one.sha256)
    uploads = (one, registered())
    assert not installed.update(uploads)
    store.mark_proven(one.sha256, "filter", "Mine")
    assert installed.update(uploads)
    assert not installed.update(uploads)
    found = installed.filters["mine"]
    assert (found.surroundings, found.upload.revision) == (lent, 1)
    store.add(XOR, registered().sha256)
    assert installed.update(uploads)
    assert installed.filters["mine"] is found
    assert installed.update((registered(),))
    assert set(installed.filters) == {"noop", "scramble"}


def test_a_native_filter_takes_no_word_of_ours_and_other_kinds_are_ignored(store):
    options = {option.name: option.default for option in OPTIONS} | {"code_dir": str(store.folder)}
    installed = InstalledFilters({"mine": Noop}, options, log)
    store.add(NATIVE, native().sha256)
    for kind in ("filter", "metric", "controller"):
        store.mark_proven(native().sha256, kind, "Mine")
        assert not installed.update((native(kind=kind),))
    assert installed.filters == {"mine": Noop}


def test_without_a_folder_for_code_nothing_is_installed(caplog):
    installed = InstalledFilters({"noop": Noop}, {option.name: option.default for option in OPTIONS}, log)
    assert not installed.update((registered(),))
    assert "code_dir" in caplog.text
