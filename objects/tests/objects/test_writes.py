"""PUT, POST and DELETE on states: conditions, appends, and what stays."""

import pytest

from sluice_objects.api import LARGEST_STATE
from sluice_objects.state.records import DELETED, ContentState, ObjectState, Session
from sluice_objects.writes import Conditions, Delete, Post, Put, etag_of, existing, write

PRESENT = write(None, Put(b"content", metadata={"x-object-meta-a": "1"}), 100.0)[0]
DELETED_STATE = write(PRESENT, Delete(), 101.0)[0]
EXPIRED = write(None, Put(b"content", expires=105.0), 100.0)[0]
ETAG = etag_of(b"content")


def conditions(match=(), none_match=()):
    return Conditions(frozenset(match), frozenset(none_match))


@pytest.mark.parametrize(
    ("state", "met", "status"),
    [
        (None, conditions(match={ETAG}), 404),
        (None, conditions(match={"*"}), 404),
        (DELETED_STATE, conditions(match={"*"}), 404),
        (EXPIRED, conditions(match={ETAG}), 404),
        (PRESENT, conditions(match={"other"}), 412),
        (PRESENT, conditions(match={"other", ETAG}), 201),
        (PRESENT, conditions(match={"*"}), 201),
        (None, conditions(none_match={"*"}), 201),
        (DELETED_STATE, conditions(none_match={"*"}), 201),
        (EXPIRED, conditions(none_match={"*"}), 201),
        (PRESENT, conditions(none_match={"*"}), 412),
        (PRESENT, conditions(none_match={ETAG}), 412),
        (PRESENT, conditions(none_match={"other"}), 201),
    ],
)
def test_conditions_of_a_put(state, met, status):
    changed, outcome = write(state, Put(b"new", met), 110.0)
    assert outcome.status == status
    if status == 201:
        assert changed.content.stream == b"new"
        assert changed.etag == etag_of(b"new")
        assert changed.version == (state.version if state else 0) + 1
    else:
        assert changed is state
        assert outcome.reason


@pytest.mark.parametrize(
    ("state", "at", "status", "stream"),
    [
        (PRESENT, 7, 201, b"content+"),
        (PRESENT, 6, 409, b"content"),
        (PRESENT, 8, 409, b"content"),
        (None, 0, 201, b"+"),
        (DELETED_STATE, 0, 201, b"+"),
        (DELETED_STATE, 7, 409, b""),
    ],
)
def test_an_append_names_the_size(state, at, status, stream):
    changed, outcome = write(state, Put(b"+", append_at=at), 110.0)
    assert outcome.status == status
    assert changed.content.stream == stream
    if status == 201:
        assert changed.etag == etag_of(stream)


def test_an_append_keeps_the_metadata_and_a_put_does_not():
    assert write(PRESENT, Put(b"+", append_at=7), 110.0)[0].metadata == {"x-object-meta-a": "1"}
    assert write(PRESENT, Put(b"new"), 110.0)[0].metadata == {}


@pytest.mark.parametrize(("state", "status"), [(None, 404), (DELETED_STATE, 404), (EXPIRED, 404), (PRESENT, 204)])
def test_only_what_exists_is_deleted(state, status):
    changed, outcome = write(state, Delete(), 110.0)
    assert outcome.status == status
    assert existing(changed, 110.0) is None
    if status == 204:
        assert (changed.kind, changed.content, changed.version) == (DELETED, ContentState(), 2)


def test_a_post_replaces_metadata_and_keeps_the_rest():
    changed, outcome = write(PRESENT, Post({"x-object-meta-b": "2"}, content_type="text/plain"), 110.0)
    assert outcome.status == 202
    assert (changed.metadata, changed.content_type) == ({"x-object-meta-b": "2"}, "text/plain")
    assert (changed.content, changed.etag) == (PRESENT.content, PRESENT.etag)
    assert write(DELETED_STATE, Post({}), 110.0)[1].status == 404


def test_a_typed_object_is_created_once():
    made, outcome = write(None, Put(b"", class_name="counter"), 100.0)
    assert (outcome.status, made.kind, made.class_name) == (201, "typed", "counter")
    assert write(made, Put(b"", class_name="counter"), 101.0)[1].status == 412


def test_the_clock_does_not_go_back_and_sessions_stay():
    state = ObjectState("plain", ContentState(), sessions={"s": Session(1, None, 1, 100.0)}, clock=200.0, version=4)
    changed, _ = write(state, Put(b"new"), 110.0)
    assert (changed.clock, changed.modified, changed.version) == (200.0, 200.0, 5)
    assert changed.sessions == state.sessions


def test_a_state_that_would_be_too_large_is_refused():
    """Before it fails the commit that it shares with other requests."""
    longest = write(None, Put(bytes(LARGEST_STATE - 1000)), 100.0)[0]
    for request in (Put(bytes(1000), append_at=LARGEST_STATE - 1000), Post({"x-object-meta-a": "a" * 1000})):
        changed, outcome = write(longest, request, 110.0)
        assert changed is longest
        assert outcome.status == 413
        assert outcome.reason.startswith("the state would have ")
    assert write(None, Put(bytes(LARGEST_STATE)), 100.0)[1].status == 413
