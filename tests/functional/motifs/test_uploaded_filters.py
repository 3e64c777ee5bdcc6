"""Objects that uploaded filters make, in their isolated environments, from other objects."""

import re
import time

import pytest
from tests.support.cluster.motifs import FIRST, SECOND, contract, is_contracted, motif, put
from tests.support.sandbox.faults import FAULTS, faulty
from tests.support.sandbox.process import SORT, XOR

pytestmark = pytest.mark.usefixtures("sandbox", "motifs")

SOURCES = "uf-sources"
SORTED = b"".join(sorted((FIRST + SECOND).splitlines(True)))
JAILED = {"environment": "process", "language": "python", "capabilities": {"stage": 220}}
SORTER = {**JAILED, "keyword": "mosort", "main": "Sort"}
KEY = {"name": "key", "type": "int", "minimum": 0, "maximum": 255, "default": 90}
SCRAMBLER = {**JAILED, "keyword": "moscramble", "main": "Xor", "parameters": [KEY]}
#: Seconds in which a filter that only computes is stopped, on a busy machine.
LIMIT = 40.0


def derive(filter_name, code, **more):
    return motif(
        "derive", of=f"AUTH_test/{SOURCES}/first,AUTH_test/{SOURCES}/second", filter=filter_name, code=code, **more
    )


@pytest.fixture(scope="module")
def container(swift):
    put(swift, SOURCES)
    put(swift, f"{SOURCES}/first", FIRST)
    put(swift, f"{SOURCES}/second", SECOND)
    put(swift, "uf-made")
    return "uf-made"


def test_an_uploaded_filter_makes_an_object_of_two_others(motifs, swift, registered, container):
    code = registered(SORTER, SORT)["sha256"]
    path = f"{container}/sorted"
    put(swift, path, SORTED, x_object_motif=derive("mosort", code))
    contract(motifs, path, "expand")
    found = swift.request("GET", path)
    assert (found.status, found.body == SORTED) == (200, True), found.body[:300]
    contract(motifs, path)
    ranged = swift.request("GET", path, range="bytes=1000000-1000099")
    assert (ranged.status, ranged.body) == (206, SORTED[1_000_000:1_000_100])


def test_an_object_keeps_the_revision_that_was_accepted(motifs, swift, api, registered, container):
    first = registered(SCRAMBLER, XOR)["sha256"]
    made = bytes(value ^ 7 for value in FIRST + SECOND)
    path = f"{container}/scrambled"
    put(swift, path, made, x_object_motif=derive("moscramble", first, options="key=7"))
    contract(motifs, path, "expand")
    second = api.upload_filter("moscramble", XOR.replace(b"value ^ key", b"value ^ key ^ 1"), wait=10)
    assert second["sha256"] != first
    assert swift.request("GET", path).body == made
    refused = swift.request("PUT", f"{container}/refused", made, x_object_motif=derive("moscramble", "0" * 64))
    assert (refused.status, b"has no revision with the code" in refused.body) == (400, True), refused
    refused = swift.request("PUT", f"{container}/refused", made, x_object_motif=derive("moscrambel", first))
    assert (refused.status, b"no filter `moscrambel` is uploaded" in refused.body) == (400, True), refused


@pytest.mark.probe
@pytest.mark.parametrize("fault", FAULTS)
def test_a_filter_that_misbehaves_leaves_the_object_contracted_and_says_why(
    motifs, swift, registered, container, fault
):
    body, reason = FAULTS[fault]
    keyword = f"mo{fault.replace(' ', '')}"
    code = registered({**JAILED, "keyword": keyword, "main": "Bad"}, faulty(body))["sha256"]
    path = f"{container}/{keyword}"
    put(swift, path, FIRST, x_object_motif=derive(keyword, code))
    contract(motifs, path, "trust")  # a verification would refuse it
    began = time.monotonic()
    refused = swift.request("GET", path)
    assert time.monotonic() - began < LIMIT
    assert (refused.status, refused.headers.get("retry-after")) == (503, "5"), refused.body[:300]
    assert re.search(rf"`derive`: .*({reason})", refused.body.decode()), refused.body
    assert is_contracted(motifs, path)
    assert swift.request("HEAD", path).headers["content-length"] == str(len(FIRST))
    # the daemon serves other objects as before
    put(swift, f"{container}/other", FIRST, x_object_motif=motif("concat", of=f"AUTH_test/{SOURCES}/first"))
    contract(motifs, f"{container}/other")
    assert swift.request("GET", f"{container}/other").body == FIRST
