"""Older versions of objects with motifs: attached by a sentence, contracted and read, and copied by Swift itself."""

import hashlib
import json

import pytest
from tests.support.cluster.motifs import FIRST, SECOND, WHOLE, contract, is_contracted, put, sources, stored_names

ETAG = hashlib.md5(WHOLE).hexdigest()


def listed_versions(swift, container):
    """The rows of an object's versions in the listing, the newest first."""
    path = f"{swift.account}/{container}?format=json&versions"
    return json.loads(swift.raw("GET", path, {"X-Auth-Token": swift.token}).body)


def versions(swift, container):
    """Their ids."""
    return [row["version_id"] for row in listed_versions(swift, container)]


def version(swift, path, version_id, method="GET"):
    target = f"{swift.account}/{path}?version-id={version_id}"
    return swift.raw(method, target, {"X-Auth-Token": swift.token})


def kept_versions(motifs, container):
    """The objects in which Swift keeps them, the oldest first; Swift names them by the remaining time."""
    hidden = [name for name in stored_names(motifs) if name.startswith(f"\0versions\0{container}/")]
    return sorted(hidden, reverse=True)


def test_a_sentence_attaches_to_each_new_version_and_older_ones_are_contracted(
    motifs, swift, api, policies, eventually
):
    eventually(api.motif_templates)
    sources(swift, "ve-sources")
    put(swift, "ve-sources/third", FIRST)
    put(swift, "ve-said", x_versions_enabled="true")
    put(swift, "ve-said/o", b"before the sentence")
    of = "AUTH_test/ve-sources/first,AUTH_test/ve-sources/second"
    sentence = "FOR CONTAINER AUTH_test/ve-said DO SET motif WITH"
    policy = policies(f"{sentence} template=concat of='{of}'")["id"]
    put(swift, "ve-said/o", WHOLE, x_object_meta_number="2")
    other = f"{sentence} template=duplicate_of source='AUTH_test/ve-sources/third'"
    changed = api.update_policy(policy, {"policy": other}, wait=10)
    assert changed["enforced"]["nodes"] == changed["enforced"]["total"]
    put(swift, "ve-said/o", FIRST, x_object_meta_number="3")
    kept = kept_versions(motifs, "ve-said")
    attached = [api.motif("AUTH_test", *name.split("/", 1))["motifs"] for name in kept]
    assert [[one["template"] for one in motif] for motif in attached] == [[], ["concat"], ["duplicate_of"]]
    for name in kept[1:]:
        contract(motifs, name)
    newest, second, first = versions(swift, "ve-said")
    (row,) = swift.listing("ve-said")
    assert (row["bytes"], row["hash"]) == (len(FIRST), hashlib.md5(FIRST).hexdigest())
    head = version(swift, "ve-said/o", second, "HEAD")
    assert (head.headers["content-length"], head.headers["x-object-meta-number"]) == (str(len(WHOLE)), "2")
    assert all(is_contracted(motifs, name) for name in kept[1:]), "nobody has read them"
    assert version(swift, "ve-said/o", second).body == WHOLE
    assert swift.request("GET", "ve-said/o").body == FIRST
    assert version(swift, "ve-said/o", newest).body == FIRST
    assert version(swift, "ve-said/o", first).body == b"before the sentence"


def test_an_older_contracted_version_becomes_the_newest_without_its_bytes(motifs, swift):
    made = sources(swift, "ve-back-sources")
    put(swift, "ve-back", x_versions_enabled="true")
    put(swift, "ve-back/o", WHOLE, x_object_motif=made)
    put(swift, "ve-back/o", b"newer")
    old, new = kept_versions(motifs, "ve-back")
    contract(motifs, old)
    newest, oldest = versions(swift, "ve-back")
    restored = version(swift, "ve-back/o", oldest, "PUT")
    assert restored.status == 201
    assert swift.request("HEAD", "ve-back/o").headers["etag"] == ETAG
    assert is_contracted(motifs, old)
    assert version(swift, "ve-back/o", newest, "DELETE").status == 204
    assert new not in stored_names(motifs)
    assert swift.request("GET", "ve-back/o").body == WHOLE


def test_a_copy_in_a_versioned_container_is_a_version_without_bytes(motifs, swift):
    made = sources(swift, "ve-copy-sources")
    put(swift, "ve-copy-sources/o", WHOLE, x_object_motif=made)
    contract(motifs, "ve-copy-sources/o")
    put(swift, "ve-copy", x_versions_enabled="true")
    put(swift, "ve-copy/o", b"older")
    copied = swift.request("COPY", "ve-copy-sources/o", destination="ve-copy/o")
    assert copied.status == 201
    _, copy = kept_versions(motifs, "ve-copy")
    assert is_contracted(motifs, copy), "no byte of it was made"
    (row,) = swift.listing("ve-copy")
    assert (row["bytes"], row["hash"]) == (len(WHOLE), ETAG)
    head = swift.request("HEAD", "ve-copy/o").headers
    assert (head["content-length"], head["etag"]) == (str(len(WHOLE)), ETAG)
    put(swift, "ve-copy/o", b"newer")
    ids = versions(swift, "ve-copy")
    assert [version(swift, "ve-copy/o", one).body for one in ids] == [b"newer", WHOLE, b"older"]
    assert [row["bytes"] for row in listed_versions(swift, "ve-copy")] == [len(b"newer"), len(WHOLE), len(b"older")]
    assert swift.request("GET", "ve-copy-sources/o").body == WHOLE


def test_a_contracted_object_from_before_the_versions_becomes_one_without_its_bytes(motifs, swift):
    made = sources(swift, "ve-late-sources")
    put(swift, "ve-late")
    put(swift, "ve-late/o", WHOLE, x_object_motif=made, x_object_meta_colour="blue")
    contract(motifs, "ve-late/o")
    assert swift.request("POST", "ve-late", x_versions_enabled="true").status == 204
    put(swift, "ve-late/o", SECOND)
    old, _ = kept_versions(motifs, "ve-late")
    assert is_contracted(motifs, old), "no byte of it was made"
    newest, oldest = versions(swift, "ve-late")
    first = version(swift, "ve-late/o", oldest)
    assert (first.body, first.headers["x-object-meta-colour"]) == (WHOLE, "blue")
    assert version(swift, "ve-late/o", newest).body == SECOND


@pytest.mark.parametrize("mode", ["x_versions_location", "x_history_location"])
def test_swift_copies_a_contracted_object_aside_before_another_takes_its_place(motifs, swift, mode):
    container = f"ve-{mode[2:9]}"
    made = sources(swift, f"{container}-sources")
    put(swift, f"{container}-old")
    put(swift, container, **{mode: f"{container}-old"})
    put(swift, f"{container}/o", WHOLE, x_object_motif=made, x_object_meta_colour="blue")
    contract(motifs, f"{container}/o")
    put(swift, f"{container}/o", SECOND)
    (row,) = swift.listing(f"{container}-old")
    assert (row["bytes"], row["hash"]) == (len(WHOLE), ETAG)
    assert is_contracted(motifs, f"{container}-old/{row['name']}"), "no byte of it was made"
    aside = swift.request("GET", f"{container}-old/{row['name']}")
    assert (aside.body, aside.headers["x-object-meta-colour"]) == (WHOLE, "blue")
    assert swift.request("GET", f"{container}/o").body == SECOND
    assert swift.request("DELETE", f"{container}/o").status == 204
    after = swift.request("GET", f"{container}/o")
    if mode == "x_versions_location":  # which puts the older one back
        assert (after.status, after.body) == (200, WHOLE)
        assert swift.listing(f"{container}-old") == []
    else:
        assert after.status == 404
        assert len(swift.listing(f"{container}-old")) == 3
