"""The bin for deleted objects on a real Swift, with concurrent writes."""

import threading

import pytest

TEXT = b"".join(b"%d: what somebody may want back\n" % number for number in range(3000))


def in_the_bin(swift, prefix):
    """The bytes of all kept objects whose path begins so."""
    names = [row["name"] for row in swift.listing("trash") if row["name"].startswith(prefix)]
    return [swift.request("GET", f"trash/{name}").body for name in names]


@pytest.fixture
def guarded(swift, policies):
    policies(
        "FOR CONTAINER AUTH_test/guarded DO SET delete_guard WITH bin=trash keep=1h, SET compression WITH min_size=0"
    )
    assert swift.request("PUT", "guarded").status in (201, 202)
    return swift


def test_what_is_deleted_is_in_the_bin_with_its_bytes_and_gone_where_it_was(guarded):
    assert guarded.request("PUT", "guarded/plan", TEXT, content_type="text/plain", x_object_meta_a="b").status == 201
    assert guarded.request("DELETE", "guarded/plan").status == 204
    assert guarded.request("GET", "guarded/plan").status == 404
    assert in_the_bin(guarded, "guarded/plan/") == [TEXT]
    (row,) = (row for row in guarded.listing("trash") if row["name"].startswith("guarded/plan/"))
    assert row["bytes"] == len(TEXT)
    copy = guarded.request("HEAD", f"trash/{row['name']}").headers
    assert (copy["content-type"], copy["x-object-meta-a"]) == ("text/plain", "b")
    assert int(copy["x-delete-at"]) > 0
    assert guarded.request("DELETE", "guarded/plan").status == 404


def test_nothing_that_is_written_while_it_is_deleted_is_lost(guarded):
    for turn in range(12):
        path, first, last = f"guarded/busy{turn}", b"first %d" % turn, b"last %d" % turn
        assert guarded.request("PUT", path, first).status == 201
        answers = []
        writing = threading.Thread(
            target=lambda p=path, b=last, a=answers: a.append(guarded.request("PUT", p, b).status)
        )
        writing.start()
        deleted = guarded.request("DELETE", path).status
        writing.join()
        assert (deleted, answers) == (204, [201])
        now = guarded.request("GET", path)
        kept = in_the_bin(guarded, f"{path}/")
        assert now.body == last if now.status == 200 else last in kept, (turn, now.status, kept)
