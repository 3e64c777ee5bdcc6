"""Objects that built-in filters make from others: thumbnails, tables as Parquet, sorted tables, indexes.

The uploads are those of docs/admin/filters/derived-objects.md.
"""

import hashlib
import io

import pytest
from PIL import Image
from pyarrow import parquet
from tests.support.cluster.motifs import contract, motif, put

pytestmark = pytest.mark.usefixtures("leases")

CONTAINER = "dr-made"
SOURCES = "dr-sources"
ROWS = [(number * 7919 % 1000, f"city {number}") for number in range(1000)]


def table(rows):
    return b"id,city\n" + b"".join(b"%d,%s\n" % (number, city.encode()) for number, city in rows)


def picture(colour):
    out = io.BytesIO()
    Image.new("RGB", (80, 60), colour).save(out, "PNG")
    return out.getvalue()


def opened(data):
    return Image.open(io.BytesIO(data))


def read(swift, path):
    found = swift.request("GET", path)
    assert found.status == 200, found.body[:300]
    return found.body


def derive(source, keyword, options=""):
    return motif("derive", of=f"AUTH_test/{SOURCES}/{source}", filter=keyword, options=options)


@pytest.fixture(scope="module", autouse=True)
def containers(motifs, swift):
    put(swift, CONTAINER)
    put(swift, SOURCES)


def test_a_thumbnail_is_made_again_by_whatever_version_of_its_library(motifs, swift, api, policies, eventually):
    eventually(api.motif_templates)
    put(swift, f"{SOURCES}/cat.png", picture("red"))
    made_of = "template=derive of=meta:photo filter=thumbnail options='width=20'"
    policies(f"FOR CONTAINER AUTH_test/{CONTAINER} DO SET motif WITH {made_of}")
    path = f"{CONTAINER}/cat.png"
    put(swift, path, b"what an older version made", x_object_meta_photo=f"AUTH_test/{SOURCES}/cat.png")
    contract(motifs, path)
    made = swift.request("GET", path)
    assert (made.status, opened(made.body).size, opened(made.body).getpixel((0, 0))) == (200, (20, 15), (255, 0, 0))
    contract(motifs, path)
    head = swift.request("HEAD", path)
    assert head.headers["etag"].strip('"') == hashlib.md5(made.body).hexdigest()
    assert head.headers["x-object-meta-photo"] == f"AUTH_test/{SOURCES}/cat.png"
    assert swift.request("GET", path).body == made.body


def test_a_table_follows_its_source_as_parquet(motifs, swift):
    put(swift, f"{SOURCES}/cities.csv", table(ROWS))
    path = f"{CONTAINER}/cities.parquet"
    put(swift, path, b"", x_object_motif=derive("cities.csv", "csv_to_parquet"))
    for rows in (ROWS, ROWS[:10]):
        put(swift, f"{SOURCES}/cities.csv", table(rows))
        found = parquet.read_table(io.BytesIO(read(swift, path)))
        assert list(zip(*found.to_pydict().values(), strict=True)) == rows
    contract(motifs, path)
    assert parquet.read_table(io.BytesIO(read(swift, path))).num_rows == 10


def test_a_range_of_a_sorted_table_is_found_by_its_index(motifs, swift):
    put(swift, f"{SOURCES}/towns.csv", table(ROWS))
    ordered = table(sorted(ROWS))
    path = f"{CONTAINER}/towns.csv"
    put(swift, path, ordered, x_object_motif=derive("towns.csv", "csv_sort", "by=id,compare=number"))
    index = motif("derive", of=f"AUTH_test/{path}", filter="csv_index", options="column=city")
    put(swift, f"{CONTAINER}/towns.index", b"", x_object_motif=index)
    put(swift, f"{SOURCES}/towns.csv", table(ROWS))  # so that both are made again
    lines = read(swift, f"{CONTAINER}/towns.index").splitlines()
    _, begin, size = next(line for line in lines if line.startswith(b"city 7,")).split(b",")
    contract(motifs, path, "expand")
    place = int(begin)
    found = swift.request("GET", path, range=f"bytes={place}-{place + int(size) - 1}")
    assert (found.status, found.body) == (206, b"433,city 7")


@pytest.mark.parametrize(
    ("source", "keyword", "options", "reason"),
    [
        ("cities.csv", "thumbnial", "", b"did you mean `thumbnail`"),
        ("cities.csv", "thumbnail", "width=0", b"`width` is `0`, expected 1 to 4096"),
        ("cities.csv", "csv_sort", "by=n,header=no", b"columns are called _1"),
    ],
)
def test_what_no_filter_takes_is_refused(swift, source, keyword, options, reason):
    refused = swift.request("PUT", f"{CONTAINER}/no", b"", x_object_motif=derive(source, keyword, options))
    assert (refused.status, reason in refused.body) == (400, True), refused.body


def test_a_source_of_another_kind_leaves_the_object_contracted_and_says_why(motifs, swift):
    put(swift, f"{SOURCES}/dog.png", picture("blue"))
    path = f"{CONTAINER}/dog.png"
    put(swift, path, b"", x_object_motif=derive("dog.png", "thumbnail"))
    contract(motifs, path)
    put(swift, f"{SOURCES}/dog.png", b"no picture")
    refused = swift.request("GET", path)
    assert (refused.status, b"this is no JPEG, PNG, GIF or WebP picture" in refused.body) == (503, True), refused.body
    put(swift, f"{SOURCES}/dog.png", picture("green"))
    assert opened(read(swift, path)).getpixel((0, 0)) == (0, 128, 0)
