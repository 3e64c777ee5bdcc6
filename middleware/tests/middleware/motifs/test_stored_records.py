"""The record of motifs that holds: the one stored with the data, or the posted one."""

import time
from dataclasses import replace

import pytest

from sluice_core.errors import DecodeError
from sluice_middleware.swift.internal_api import Timestamp
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.stored_object import StoredObject, describe_upload
from sluice_motifs.storage.records import Motif, Record

OLD, NEW = "1700000000.00000", "1700000001.00000"
OFFSET, LATER = f"{OLD}_0000000100000000", f"{OLD}_0000000200000000"


def stored(data, kept=None, posted=None, **more):
    headers = {
        "X-Backend-Data-Timestamp": data,
        "X-Backend-Timestamp": data,
        "Content-Length": "0",
        "Etag": "d41d8",
        sysmeta.MOTIF: kept,
        sysmeta.POSTED_MOTIF: posted,
    }
    return StoredObject([(name, value) for name, value in {**headers, **more}.items() if value is not None])


@pytest.mark.parametrize(
    ("data", "kept", "posted", "holds"),
    [
        (OLD, None, None, ""),
        (OLD, "kept", None, "kept"),
        (OLD, None, f"{OLD} posted", "posted"),
        (OLD, "kept", f"{OLD} posted", "posted"),
        (OFFSET, "kept", f"{OFFSET} posted", "posted"),
        (LATER, "kept", f"{OFFSET} posted", "kept"),
        (LATER, None, f"{OFFSET} posted", "posted"),
        (NEW, None, f"{OLD} posted", ""),
        (NEW, "kept", f"{OLD} posted", "kept"),
        (OLD, "kept", f"{OLD}/d41d8 posted", "posted"),
        (OLD, "kept", f"{OLD}/another posted", "kept"),
        (OFFSET, None, f"{LATER}/another posted", ""),
    ],
)
def test_a_posted_record_holds_for_the_data_on_which_it_was_written(data, kept, posted, holds):
    assert stored(data, kept, posted).motif_record == holds


def test_a_posted_record_names_the_data():
    here = stored(OFFSET, "kept")
    assert stored(OFFSET, "kept", here.posted_motif("posted")).motif_record == "posted"
    assert stored(NEW, None, here.posted_motif("posted"), Etag="of other bytes").motif_record == ""


@pytest.mark.parametrize(
    ("kept", "written", "posted", "holds"),
    [
        (None, None, f"{OLD}/d41d8 posted", "posted"),
        (None, None, f"{OLD}/another posted", ""),
        (None, None, f"{OLD} posted", ""),
        ("kept", None, f"{OLD}/d41d8 posted", "posted"),
        ("kept", OFFSET, f"{OFFSET}/d41d8 posted", "posted"),
        ("kept", LATER, f"{OFFSET}/d41d8 posted", "kept"),
    ],
)
def test_a_posted_record_that_the_reconciler_moved_holds_for_the_same_bytes(kept, written, posted, holds):
    assert stored(NEW, kept, posted, **{sysmeta.MOTIF_WRITTEN: written}).motif_record == holds
    later = {"X-Backend-Timestamp": "1700000002.00000", sysmeta.MOTIF_WRITTEN: written}
    assert stored(NEW, kept, posted, **later).motif_record == (kept or "")


@pytest.mark.parametrize(
    ("kept", "posted", "carries", "written"),
    [
        (None, None, True, None),
        ("kept", None, True, OFFSET),
        ("kept", f"{OFFSET} posted", True, OFFSET),
        (None, f"{OLD} posted", True, OLD),
        ("kept", None, False, "this"),
        (None, f"{OLD} posted", False, "this"),
    ],
)
def test_an_upload_says_for_which_data_its_record_was_written_and_what_was_read(kept, posted, carries, written):
    before = stored(OFFSET, kept, posted, **{"X-Backend-Timestamp": NEW})
    env = {}
    describe_upload(env, before)
    before.replace_by(env, carries)
    at = env["HTTP_X_TIMESTAMP"]
    assert at.startswith(f"{OLD}_00000002")
    names = {"this": f"{at}/{NEW}", None: None}.get(written, f"{written}/{NEW}")
    assert env.get("HTTP_X_OBJECT_SYSMETA_SLUICE_MOTIF_WRITTEN") == names


def test_a_record_that_was_posted_while_the_object_was_stored_again_as_it_was_holds():
    """A motif that was detached then stays detached."""
    written = {sysmeta.MOTIF_WRITTEN: f"{OFFSET}/{NEW}", "X-Backend-Timestamp": NEW}
    assert stored(LATER, "kept", f"{OFFSET}/d41d8 posted", **written).motif_record == "posted"
    assert stored(LATER, "kept", f"{OLD}/d41d8 posted", **written).motif_record == "kept"


TIER = Motif("tier", {"policy": "cold"}, "who")
COPIED = Motif("tier", {"policy": "cold", "copy": "that"}, "who")
URL = Motif("url", {"source": "http://there/"}, "who")
ELSEWHERE = Motif("url", {"source": "http://elsewhere/"}, "who")


@pytest.mark.parametrize(
    ("kept", "posted", "holds"),
    [
        ([COPIED], [TIER, URL], [COPIED, URL]),
        ([TIER], [COPIED], [TIER]),
        ([URL], [URL, ELSEWHERE], [URL, ELSEWHERE]),
        ([TIER, URL], [TIER], [TIER, URL]),
        ([URL], [], [URL]),
    ],
)
def test_a_motif_that_was_posted_while_another_record_was_stored_is_added_to_it(kept, posted, holds):
    record = Record(tuple(kept), {"both": "new", "kept": "1"}).encode()
    added = Record(tuple(posted), {"both": "old", "posted": "2"}).encode()
    versions = {"both": "new", "kept": "1", **({"posted": "2"} if len(holds) > len(kept) else {})}

    def found(read):
        written = {sysmeta.MOTIF_WRITTEN: f"{LATER}/{read}", "X-Backend-Timestamp": NEW}
        return Record.decode(stored(LATER, record, f"{OFFSET}/d41d8 {added}", **written).motif_record)

    assert found(read=OFFSET) == Record(tuple(holds), versions)
    assert found(read=NEW) == Record.decode(record), "it was looked at before the other was stored"


@pytest.mark.parametrize("posted", ["no record", Record((replace(URL, identity="x" * 1900),)).encode()])
def test_what_cannot_be_added_is_left_out(posted, caplog):
    record = Record((COPIED, ELSEWHERE)).encode()
    written = {sysmeta.MOTIF_WRITTEN: f"{LATER}/{OLD}", "X-Backend-Timestamp": NEW}
    assert stored(LATER, record, f"{OLD}/d41d8 {posted}", **written).motif_record == record
    assert "is lost" in caplog.text


def test_a_contracted_object_is_described_as_it_was():
    more = {sysmeta.CONTRACTED: sysmeta.encode_contracted(7), sysmeta.ETAG: "plain"}
    found = stored(OFFSET, "kept", **more)
    assert (found.contracted, found.size, found.etag, found.version) == (True, 7, "plain", OLD)
    assert found == stored(OFFSET, "kept", **more)
    assert found != stored(LATER, "kept", **more)
    assert found != stored(OFFSET, "kept")


def test_new_content_is_a_version_of_its_own_at_the_time_of_the_upload_before_it():
    before = stored(OFFSET, "kept")
    env = {}
    before.replace_by(env, new_content=True)
    at, made = env["HTTP_X_TIMESTAMP"], env[sysmeta.MADE_ENV]
    assert before.version == OLD
    assert OFFSET < at < NEW
    assert float(Timestamp(made)) == pytest.approx(time.time(), abs=60)
    assert Timestamp(made).offset == Timestamp(at).offset
    first, second = (stored(data, "kept", **{sysmeta.MADE: made}) for data in (at, f"{OLD}_0000009900000000"))
    assert first.version == second.version != before.version
    assert len(first.version) == len(before.version)
    assert first.modified == second.modified == float(Timestamp(made))
    again = {}
    first.replace_by(again)
    assert again[sysmeta.MADE_ENV] == made


def test_new_content_is_later_than_what_clients_were_shown():
    ahead = f"{time.time() + 1000:.5f}"
    env = {}
    stored(OLD, "kept", **{"X-Backend-Timestamp": ahead}).replace_by(env, new_content=True)
    assert Timestamp(ahead) < Timestamp(env[sysmeta.MADE_ENV]) < float(ahead) + 1


@pytest.mark.parametrize("value", ["", "7", "{}", '{"v": 2, "s": 7}', '{"v": 1, "s": -1}', '{"v": 1, "s": "7"}'])
def test_damaged_metadata_of_a_contracted_object_are_told(value):
    with pytest.raises(DecodeError, match=sysmeta.CONTRACTED):
        stored(OLD, "kept", **{sysmeta.CONTRACTED: value})
