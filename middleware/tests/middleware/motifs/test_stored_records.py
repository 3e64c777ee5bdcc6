"""Which record of motifs holds: the one that is kept with the data, or the one that was posted."""

import pytest

from sluice_core.errors import DecodeError
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.stored_object import StoredObject, describe_upload

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


def test_an_upload_says_for_which_data_it_keeps_a_record():
    for kept, names in (("kept", True), (None, False)):
        env = {}
        describe_upload(env, stored(OFFSET, kept))
        stored(OFFSET, kept).replace_by(env)
        assert env["HTTP_X_TIMESTAMP"].startswith(f"{OLD}_00000002")
        assert env.get("HTTP_X_OBJECT_SYSMETA_SLUICE_MOTIF_WRITTEN") == (env["HTTP_X_TIMESTAMP"] if names else None)


def test_a_contracted_object_is_described_as_it_was():
    more = {sysmeta.CONTRACTED: sysmeta.encode_contracted(7), sysmeta.ETAG: "plain"}
    found = stored(OFFSET, "kept", **more)
    assert (found.contracted, found.size, found.etag, found.version) == (True, 7, "plain", OLD)
    assert found == stored(OFFSET, "kept", **more)
    assert found != stored(LATER, "kept", **more)
    assert found != stored(OFFSET, "kept")


@pytest.mark.parametrize("value", ["", "7", "{}", '{"v": 2, "s": 7}', '{"v": 1, "s": -1}', '{"v": 1, "s": "7"}'])
def test_damaged_metadata_of_a_contracted_object_are_told(value):
    with pytest.raises(DecodeError, match=sysmeta.CONTRACTED):
        stored(OLD, "kept", **{sysmeta.CONTRACTED: value})
