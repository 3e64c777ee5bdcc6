"""Objects that are contracted and expanded when a client reads, as docs/admin/motifs.md says; other requests do not
differ.
"""

import hashlib
import json
import time

import pytest
from tests.support.cluster.motifs import (
    FIRST,
    SECOND,
    WHOLE,
    contract,
    expand,
    is_contracted,
    motif,
    put,
    sources,
    stored_copies,
    stored_names,
)
from tests.support.cluster.object_files import download
from tests.support.cluster.people import acl_entry
from tests.support.cluster.uninstall import named_on_disks, token

from sluice_aio.base.setup import EC21
from sluice_middleware.motifs.attachments import HEADER
from sluice_middleware.wsgi.response import RefusedRequest
from sluice_rewrites.accounts import copies_account

#: Headers that differ between any two responses.
MOMENTS = {"date", "x-trans-id", "x-openstack-request-id", "connection"}
REQUESTS = {
    "whole": ("GET", {}),
    "head": ("HEAD", {}),
    "range": ("GET", {"Range": "bytes=900000-1200000"}),
    "last bytes": ("GET", {"Range": "bytes=-7"}),
    "ranges": ("GET", {"Range": "bytes=0-9,1000000-1000009"}),
    "beyond the end": ("GET", {"Range": "bytes=99999999-"}),
    "no such etag": ("GET", {"If-Match": "no"}),
    "not modified": ("GET", {"If-None-Match": hashlib.md5(WHOLE).hexdigest()}),
    "modified": ("GET", {"If-None-Match": "no"}),
    "since": ("GET", {"If-Modified-Since": "Thu, 31 Dec 2099 00:00:00 GMT"}),
}


def shown(swift, path, method, headers):
    answer = swift.request(method, path, **{name.replace("-", "_"): value for name, value in headers.items()})
    named = {name: value for name, value in answer.headers.items() if name not in MOMENTS}
    boundary = named.get("content-type", "").partition("boundary=")[2]
    if boundary:
        named["content-type"] = named["content-type"].replace(boundary, "")
    return answer.status, named, answer.body.replace(boundary.encode(), b"") if boundary else answer.body


@pytest.mark.parametrize("kind", ["replicated", pytest.param("erasure coded", marks=pytest.mark.probe)])
def test_a_contracted_object_is_to_clients_what_it_was(motifs, swift, kind):
    container, name = f"mo-{kind[:3]}", "ünï code/with space"
    made = sources(swift, container)
    goal = f"{container}-goal"
    put(swift, goal, **({"x_storage_policy": EC21} if kind == "erasure coded" else {}))
    path = f"{goal}/{name}"
    put(
        swift,
        path,
        WHOLE,
        x_object_motif=made,
        content_type="text/csv",
        x_object_meta_colour="blue",
        content_encoding="br",
    )
    assert (
        swift.request("POST", path, x_object_meta_colour="red", x_delete_at=str(int(time.time()) + 86400)).status == 202
    )
    requests = dict(REQUESTS)
    if kind == "erasure coded":
        del requests["beyond the end"]  # Swift answers with the type of its error text there
    before = {what: shown(swift, path, *request) for what, request in requests.items()}
    rows = swift.listing(goal)
    for what, request in requests.items():
        contract(motifs, path)
        assert swift.listing(goal) == rows
        assert shown(swift, path, *request) == before[what], what
        read = what in ("whole", "range", "last bytes", "ranges", "modified")
        if not read:
            assert is_contracted(motifs, path), what
    contract(motifs, path)
    assert shown(swift, path, *REQUESTS["whole"]) == before["whole"]
    expand(motifs, path)
    assert not is_contracted(motifs, path)
    assert {what: shown(swift, path, *request) for what, request in requests.items()} == before
    assert swift.listing(goal) == rows


def _wait(question, limit=10.0):
    end = time.monotonic() + limit
    while not question():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_header_attaches_or_says_why_not(motifs, swift, plain):
    made = sources(swift, "mo-attach")
    put(swift, "mo-attach/o", WHOLE)
    assert swift.request("POST", "mo-attach/o", x_object_motif=made, x_object_meta_a="1").status == 202
    assert swift.request("POST", "mo-attach/o", x_object_meta_a="2").status == 202, "which carries it over"
    put(
        swift,
        "mo-attach/short",
        WHOLE,
        x_object_motif="concat; of=AUTH_test/mo-attach/first,AUTH_test/mo-attach/second",
    )
    for name in ("o", "short"):
        contract(motifs, f"mo-attach/{name}", "expand")
        assert swift.request("GET", f"mo-attach/{name}").body == WHOLE
    put(plain, "mo-private")
    put(plain, "mo-private/o", b"private")
    for value, status, reason in (
        ("concat", 400, "needs parameter `of`"),
        ("conkat; of=a", 400, "did you mean `concat`"),
        ("[{", 400, "is no JSON"),
        ("concat; of=AUTH_test/mo-attach/none", 400, "does not exist"),
        ("concat; of=none", 400, "expected account/container/object"),
        ("concat; of=AUTH_test2/mo-private/o", 403, "may not read"),
        ("concat; of=AUTH_test/mo-attach/bad", 400, "from itself"),
    ):
        refused = swift.request("PUT", "mo-attach/bad", b"x", x_object_motif=value)
        assert (refused.status, reason in refused.body.decode()) == (status, True), (value, refused)
    assert swift.request("HEAD", "mo-attach/bad").status == 404
    assert plain.request("POST", "mo-private", x_container_read=acl_entry(motifs, "test:tester")).status == 204
    put(swift, "mo-attach/shared", b"private", x_object_motif="concat; of=AUTH_test2/mo-private/o")
    contract(motifs, "mo-attach/shared")
    assert plain.request("POST", "mo-private", x_container_read="").status == 204
    refused = swift.request("GET", "mo-attach/shared")
    assert (refused.status, b"may not read" in refused.body) == (503, True)
    assert is_contracted(motifs, "mo-attach/shared")


def test_copy_post_put_and_delete_leave_the_bytes_unmade(motifs, swift, capsys):
    made = sources(swift, "mo-verbs")
    put(swift, "mo-verbs/o", WHOLE, x_object_motif=made)
    contract(motifs, "mo-verbs/o")
    copied = swift.request("PUT", "mo-verbs/copy", x_copy_from="mo-verbs/o")
    assert (copied.status, copied.headers["etag"]) == (201, hashlib.md5(WHOLE).hexdigest())
    assert is_contracted(motifs, "mo-verbs/o")
    assert is_contracted(motifs, "mo-verbs/copy")
    assert swift.request("POST", "mo-verbs/o", x_object_meta_a="1").status == 202
    assert is_contracted(motifs, "mo-verbs/o")
    assert {f"AUTH_test/mo-verbs/{name}" for name in ("o", "copy")} <= named_on_disks(
        motifs.layout, "contracted", capsys
    )
    assert swift.request("GET", "mo-verbs/copy").body == WHOLE
    ranged = swift.request("PUT", "mo-verbs/part", x_copy_from="mo-verbs/o", range="bytes=0-9")
    assert ranged.status == 201
    assert swift.request("GET", "mo-verbs/part").body == WHOLE[:10]
    contract(motifs, "mo-verbs/o")
    put(swift, "mo-verbs/o", b"another")
    assert swift.request("GET", "mo-verbs/o").body == b"another"
    contract(motifs, "mo-verbs/copy")
    assert swift.request("DELETE", "mo-verbs/copy").status == 204
    assert swift.request("GET", "mo-verbs/copy").status == 404
    assert {row["name"] for row in swift.listing("mo-verbs")} == {"first", "second", "o", "part"}


def test_other_bytes_than_it_had_are_given_to_nobody(motifs, swift):
    made = sources(swift, "mo-wrong")
    for name, body in (("short", b"x" * 10), ("wrong", SECOND + FIRST)):
        put(swift, f"mo-wrong/{name}", body, x_object_motif=made)
        contract(motifs, f"mo-wrong/{name}", "trust")
    refused = swift.request("GET", "mo-wrong/short")
    assert (refused.status, refused.headers["retry-after"]) == (503, "5"), refused
    assert b"more than the 10 bytes that it had were made" in refused.body
    cut = download(swift, "mo-wrong/wrong")
    assert (cut.status, cut.whole) == (200, False)
    assert is_contracted(motifs, "mo-wrong/short")
    assert is_contracted(motifs, "mo-wrong/wrong")
    assert swift.request("GET", "mo-wrong/wrong", range="bytes=0-9").body == FIRST[:10], (
        "a range waits for its own bytes"
    )


def test_a_derived_object_is_made_anew_when_a_source_has_changed(motifs, swift):
    made = sources(swift, "mo-stale")
    put(swift, "mo-stale/o", WHOLE, x_object_motif=made)
    put(swift, "mo-stale/c", WHOLE, x_object_motif=made)
    contract(motifs, "mo-stale/c")
    old = swift.request("HEAD", "mo-stale/o")
    assert "x-sluice-stale" not in old.headers
    put(swift, "mo-stale/first", SECOND)
    for name in ("o", "c"):
        head = swift.request("HEAD", f"mo-stale/{name}")
        assert (head.headers["x-sluice-stale"], head.headers["etag"]) == ("true", old.headers["etag"])
    new = swift.request("GET", "mo-stale/o")
    assert new.body == SECOND + SECOND
    assert "etag" not in new.headers
    assert "content-length" not in new.headers
    known = swift.request("GET", "mo-stale/c", if_none_match=old.headers["etag"])
    assert (known.status, known.body) == (200, SECOND + SECOND), "the condition speaks of the new content"
    assert known.headers["etag"] == hashlib.md5(known.body).hexdigest()
    put(swift, "mo-stale/second", FIRST)
    ranged = swift.request("GET", "mo-stale/c", range="bytes=-4")
    assert (ranged.status, ranged.body) == (206, FIRST[-4:])
    _wait(lambda: "x-sluice-stale" not in swift.request("HEAD", "mo-stale/c").headers)
    copied = swift.request("PUT", "mo-stale/copy", x_copy_from="mo-stale/o")
    assert copied.status == 201
    assert swift.request("GET", "mo-stale/copy").body == SECOND + FIRST


def test_a_source_that_is_gone_leaves_what_there_is(motifs, swift):
    made = sources(swift, "mo-gone")
    put(swift, "mo-gone/there", WHOLE, x_object_motif=made)
    put(swift, "mo-gone/not", WHOLE, x_object_motif=made)
    contract(motifs, "mo-gone/not")
    assert swift.request("DELETE", "mo-gone/second").status == 204
    assert swift.request("GET", "mo-gone/there").body == WHOLE
    refused = swift.request("GET", "mo-gone/not")
    assert (refused.status, b"does not exist any more" in refused.body) == (503, True), refused
    assert is_contracted(motifs, "mo-gone/not")
    assert swift.request("HEAD", "mo-gone/not").headers["content-length"] == str(len(WHOLE))


@pytest.mark.parametrize("change", ["PUT", "DELETE", "POST"])
def test_a_duplicate_keeps_its_bytes_whatever_becomes_of_its_source(motifs, swift, change):
    container = f"mo-dup-{change.lower()}"
    put(swift, container)
    put(swift, f"{container}/source", FIRST)
    put(swift, f"{container}/twin", FIRST, x_object_motif=motif("duplicate_of", source=f"AUTH_test/{container}/source"))
    contract(motifs, f"{container}/twin")
    assert is_contracted(motifs, f"{container}/source"), "both have given up their bytes to one copy"
    headers = {"x_delete_after": "86400"} if change == "POST" else {}
    changed = swift.request(change, f"{container}/source", SECOND if change == "PUT" else b"", **headers)
    assert changed.status < 300, changed
    assert is_contracted(motifs, f"{container}/twin"), "nobody waits for it"
    assert swift.request("GET", f"{container}/twin").body == FIRST


def test_what_a_client_says_of_its_bytes_is_proven_before_they_go(motifs, swift):
    put(swift, "mo-lies")
    put(swift, "mo-lies/source", FIRST)
    source = "AUTH_test/mo-lies/source"
    put(swift, "mo-lies/twin", b"other bytes", x_object_motif=motif("duplicate_of", source=source))
    contract(motifs, "mo-lies/twin")
    assert swift.request("GET", "mo-lies/twin").body == b"other bytes"
    put(swift, "mo-lies/joined", b"other bytes", x_object_motif=motif("concat", of=source))
    with pytest.raises(RefusedRequest, match="more than the 11 bytes that it had were made"):
        contract(motifs, "mo-lies/joined")
    assert swift.request("GET", "mo-lies/joined").body == b"other bytes"
    for change in ("PUT", "DELETE"):
        assert swift.request(change, "mo-lies/source").status < 300, "no source is frozen"


def test_without_a_daemon_only_what_must_be_made_is_missing(motifs, swift):
    made = sources(swift, "mo-away")
    for name in ("contracted", "expanded"):
        put(swift, f"mo-away/{name}", WHOLE, x_object_motif=made)
    contract(motifs, "mo-away/contracted")
    motifs.remove("motifs")
    try:
        refused = swift.request("GET", "mo-away/contracted")
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        assert b"the motif daemon" in refused.body
        assert swift.request("HEAD", "mo-away/contracted").headers["content-length"] == str(len(WHOLE))
        assert swift.request("GET", "mo-away/expanded").body == WHOLE
        assert swift.request("GET", "mo-away/first").body == FIRST
        put(swift, "mo-away/other", b"x")
        refused = swift.request("PUT", "mo-away/attached", WHOLE, x_object_motif=made)
        assert refused.status == 503
        put(swift, "mo-away/first", SECOND)
        assert swift.request("GET", "mo-away/expanded").status == 503, "nobody gets bytes that are out of date"
    finally:
        motifs.add({"motifs"})
    assert swift.request("GET", "mo-away/contracted").body == SECOND + SECOND


def test_what_must_stay_is_not_contracted(motifs, swift):
    made = sources(swift, "mo-stay")
    assert HEADER == "X-Object-Motif"
    refused = swift.request("PUT", "mo-stay/dlo", x_object_manifest="mo-stay/f", x_object_motif=made)
    assert (refused.status, b"take no motifs" in refused.body) == (400, True)
    put(swift, "mo-synced", x_container_sync_to="//sluice/aio/AUTH_test/mo-stay", x_container_sync_key="k")
    put(swift, "mo-synced/o", WHOLE, x_object_motif=made)
    with pytest.raises(Exception, match="synchronized"):
        contract(motifs, "mo-synced/o")
    assert swift.request("GET", "mo-synced/o").body == WHOLE


def test_versions_and_expiring_objects_are_objects_like_others(motifs, swift):
    made = sources(swift, "mo-src")
    put(swift, "mo-ver", x_versions_enabled="true")
    put(swift, "mo-ver/o", WHOLE, x_object_motif=made)
    (row,) = json.loads(swift.raw("GET", f"{swift.account}/mo-ver?format=json&versions", token(swift)).body)
    hidden = next(name for name in stored_names(motifs) if name.startswith("\0versions\0mo-ver/"))
    contract(motifs, hidden)
    assert swift.request("HEAD", "mo-ver/o").headers["content-length"] == str(len(WHOLE))
    put(swift, "mo-ver/o", b"newer")
    old = f"{swift.account}/mo-ver/o?version-id={row['version_id']}"
    assert is_contracted(motifs, hidden), "a newer version leaves it as it is"
    assert swift.raw("GET", old, token(swift)).body == WHOLE
    assert swift.raw("DELETE", old, token(swift)).status == 204
    put(swift, "mo-src/expiring", WHOLE, x_object_motif=made, x_delete_after="4")
    contract(motifs, "mo-src/expiring")
    assert swift.request("HEAD", "mo-src/expiring").headers["content-length"] == str(len(WHOLE))
    _wait(lambda: swift.request("GET", "mo-src/expiring").status == 404)


def test_a_tier_keeps_the_bytes_under_another_storage_policy(motifs, swift):
    put(swift, "mo-tier")
    put(swift, "mo-tier/o", WHOLE, x_object_motif=f"tier; policy={EC21}", x_object_meta_colour="blue")
    put(swift, "mo-tier/bad", WHOLE, x_object_motif="tier; policy=ec2")
    with pytest.raises(RefusedRequest, match="did you mean `ec21`"):
        contract(motifs, "mo-tier/bad")
    before, size = stored_copies(motifs), swift.request("HEAD").headers["x-account-container-count"]
    contract(motifs, "mo-tier/o")
    (copy,) = stored_copies(motifs) - before
    assert copy.startswith(f"sha256:{EC21}/")
    assert {one["name"] for one in swift.listing("mo-tier")} == {"o", "bad"}
    assert swift.request("HEAD").headers["x-account-container-count"] == size
    of_copies = f"/v1/{copies_account(swift.account.rpartition('/')[2])}/{copy}"
    assert swift.raw("GET", of_copies, token(swift)).status == 403
    answer = swift.request("GET", "mo-tier/o")
    assert (answer.body, answer.headers["x-object-meta-colour"]) == (WHOLE, "blue")
    contract(motifs, "mo-tier/o")
    assert stored_copies(motifs) - before == {copy}, "the same bytes have one copy"
    put(swift, "mo-tier/o", b"other")
    _wait(lambda: copy not in stored_copies(motifs), 60.0)
    assert swift.request("GET", "mo-tier/o").body == b"other"


@pytest.mark.probe
def test_expansions_are_held_to_the_bandwidth_of_what_they_store(motifs, swift, policies):
    made = sources(swift, "mo-held-sources")
    put(swift, "mo-held")
    put(swift, "mo-held/object", WHOLE, x_object_motif=made)
    policies("FOR CONTAINER AUTH_test/mo-held DO SET bandwidth WITH max_put_bw=500kBps")
    allowed, end, held = len(WHOLE) / 500_000, time.monotonic() + 60, 0
    while held < 3:  # in a row: one may be slow for another reason
        contract(motifs, "mo-held/object")
        begun = time.monotonic()
        expand(motifs, "mo-held/object")
        held = held + 1 if time.monotonic() - begun > allowed / 2 else 0
        assert time.monotonic() < end, "expansions are as fast as without a ceiling"
    assert swift.request("GET", "mo-held/object").body == WHOLE
