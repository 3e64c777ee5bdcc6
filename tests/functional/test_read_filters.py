"""Reads on a real Swift: without metadata, or with read-ahead for a client that reads in order."""

import io

import pytest
from PIL import Image
from pyarrow import parquet

from sluice_core.cache.write_marks import object_digest

SECRET = b"secret place"
_MAKER = 0x010F


def picture():
    tags = Image.Exif()
    tags[_MAKER] = SECRET.decode()
    out = io.BytesIO()
    Image.new("RGB", (320, 200), (200, 30, 10)).save(out, "JPEG", exif=tags)
    return out.getvalue()


def test_a_picture_is_read_without_its_metadata_and_stays_as_it_is(swift, policies):
    swift.request("PUT", "pictures")
    dirty = picture()
    for name in ("a.jpg", "a.bin"):
        assert swift.request("PUT", f"pictures/{name}", dirty, content_type="application/octet-stream").status == 201
    made = policies("FOR CONTAINER AUTH_test/pictures DO SET sanitise")
    clean = swift.request("GET", "pictures/a.jpg")
    assert (clean.status, "etag" in clean.headers) == (200, False)
    assert SECRET not in clean.body
    assert Image.open(io.BytesIO(clean.body)).tobytes() == Image.open(io.BytesIO(dirty)).tobytes()
    assert swift.request("GET", "pictures/a.bin").body == dirty
    assert swift.request("PUT", "pictures/b.jpg", b"no picture").status == 201
    refused = swift.request("GET", "pictures/b.jpg")
    assert refused.status == 503
    assert b"neither JPEG nor PDF" in refused.body
    assert made["state"] == "active"


def test_pictures_are_read_smaller_and_tables_sorted_and_as_parquet(swift, policies):
    swift.request("PUT", "derived")
    assert swift.request("PUT", "derived/a.jpg", picture()).status == 201
    assert swift.request("PUT", "derived/a.csv", b"id,town\n10,Bern\n9,Thun\n").status == 201
    policies("FOR CONTAINER AUTH_test/derived DO SET thumbnail WITH width=32 height=32")
    tables = "FOR CONTAINER AUTH_test/derived WHEN OBJECT_TYPE = csv DO SET"
    policies(f"{tables} csv_sort WITH by=id compare=number")
    assert Image.open(io.BytesIO(swift.request("GET", "derived/a.jpg").body)).size == (32, 20)
    assert swift.request("GET", "derived/a.csv").body == b"id,town\n9,Thun\n10,Bern\n"
    policies(f"{tables} csv_to_parquet")
    found = parquet.read_table(io.BytesIO(swift.request("GET", "derived/a.csv").body))
    assert found.to_pydict() == {"id": [9, 10], "town": ["Thun", "Bern"]}


@pytest.fixture
def is_cached(cluster):
    def find(path):
        key = object_digest(f"AUTH_test/{path}".encode()).hex()
        return (cluster.layout.cache / "objects" / key[:2] / key).exists()

    return find


def test_what_follows_is_in_the_cache_before_a_client_that_reads_in_order_asks_for_it(
    swift, policies, is_cached, eventually
):
    swift.request("PUT", "film")
    frames = [f"film/scene/{number:04d}" for number in range(40)]
    for path in frames:
        assert swift.request("PUT", path, path.encode()).status == 201
    policies("FOR CONTAINER AUTH_test/film DO SET prefetch WITH ahead=16, SET caching")
    eventually(lambda: len(swift.request("GET", "film").body.split()) == len(frames))
    for path in frames[:3]:
        assert swift.request("GET", path).body == path.encode()
    # the client waits, since it might overtake the read-ahead
    eventually(lambda: all(map(is_cached, frames[3:19])))
    for path in frames[3:20]:
        assert swift.request("GET", path).body == path.encode()
    eventually(lambda: any(map(is_cached, frames[20:])))
    for path in frames[20:]:
        assert swift.request("GET", path).body == path.encode()
