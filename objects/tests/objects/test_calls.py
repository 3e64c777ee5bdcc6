import logging
from dataclasses import replace

import pytest

from sluice_objects.api import LARGEST_ANSWER, LARGEST_STATE, ObjectClass, Refused, method
from sluice_objects.calls import DONE, FAILED, GONE, REFUSED, Call, run
from sluice_objects.classes import BUILT_IN
from sluice_objects.sessions import LARGEST_KEPT, MOST
from sluice_objects.state.codec import encode
from sluice_objects.state.records import DELETED, PLAIN, TYPED, ContentState, ObjectState, Session
from sluice_objects.testing import LocalHome
from sluice_objects.values import pack, unpack
from sluice_objects.writes import etag_of


class Trial(ObjectClass):
    """Does what its argument says."""

    name = "trial"

    @method(writes=True)
    def append(self, context, argument):
        """Append x, and answer the argument."""
        context.stream.write(b"x")
        return argument

    @method(writes=True)
    def nothing(self, context, argument):
        """Change nothing."""
        return context.time

    @method()
    def look(self, context, argument):
        """Answer what the context says."""
        return [context.caller, context.request_id, context.time, context.version]

    @method(writes=True)
    def fail(self, context, argument):
        """Write, and raise."""
        context.stream.write(b"y")
        raise argument

    @method(writes=True)
    def grow(self, context, argument):
        """Write far away."""
        context.stream.write(b"y", LARGEST_STATE)


@pytest.fixture
def home():
    return LocalHome(Trial())


def numbered(home, number, name="append", argument=None, session="s"):
    return home.run(name, argument, session, number)


def test_a_change_is_the_next_version_at_the_time_of_the_call(home):
    home.time += 5
    outcome = home.run("append", [1])
    assert (outcome.kind, outcome.status, outcome.version) == (DONE, 200, 2)
    assert unpack(outcome.answer) == [1]
    state = home.state
    assert (state.content.stream, state.version, state.modified, state.clock) == (b"x", 2, home.time, home.time)


def test_a_call_without_a_change_leaves_the_state(home):
    before = home.state
    assert home.run("nothing").version == 1
    assert home.call("look") == ["user", f"request {home.time}", home.time, 1]
    assert home.state is before


def test_the_time_never_goes_back(home):
    home.run("append")
    then, home.time = home.time, home.time - 300
    assert home.answer(home.run("nothing")) == then
    home.run("append")
    assert (home.state.clock, home.state.modified) == (then, then)


def test_a_refusal_reaches_the_caller_and_changes_nothing(home):
    before = home.state
    outcome = home.run("fail", Refused("no `y` here" + "!" * 5000, 412))
    assert (outcome.kind, outcome.status, outcome.error) == (REFUSED, 412, "Refused")
    assert outcome.message.startswith("no `y` here!")
    assert len(outcome.message) == 1000
    assert home.state is before


def test_another_error_is_that_of_the_class(home, caplog):
    before = home.state
    with caplog.at_level(logging.ERROR):
        outcome = home.run("fail", KeyError("secret"))
    assert (outcome.kind, outcome.status, outcome.error) == (FAILED, 422, "KeyError")
    assert outcome.message == "class `trial`: method `fail` raised `KeyError`"
    assert "secret" in caplog.text, "the log has the traceback"
    assert home.state is before


@pytest.mark.parametrize("answer", [(1,), {1: 2}, 1 << 64, object()])
def test_an_answer_that_is_no_value_is_an_error_of_the_class(home, answer):
    outcome = home.run("append", answer)
    assert (outcome.kind, outcome.error) == (FAILED, "NoValue")
    assert outcome.message.startswith("class `trial`: method `append` raised `NoValue`: ")
    assert home.state.version == 1


def test_an_answer_is_bounded(home):
    longest = bytes(LARGEST_ANSWER - 5)
    assert home.call("append") == {}
    assert len(home.run("append", longest).answer) == LARGEST_ANSWER
    outcome = home.run("append", longest + b"x")
    assert (outcome.kind, outcome.status, outcome.error) == (REFUSED, 413, "AnswerTooLarge")
    assert home.state.version == 3


def test_a_call_is_refused_when_its_state_would_not_be_encoded(home):
    """So that it does not fail the commit that it shares with others."""
    free = LARGEST_STATE - len(encode(home.state))
    home.state = replace(home.state, content=ContentState(bytes(free - 1)))
    assert home.run("append").status == 200
    assert len(encode(home.state)) == LARGEST_STATE
    before = home.state
    outcome = home.run("append")
    assert (outcome.kind, outcome.status, outcome.error) == (REFUSED, 413, "StateTooLarge")
    assert numbered(home, 1, "nothing").error == "StateTooLarge", "the session, too, has no room"
    assert home.state is before


def test_a_method_that_writes_too_far_is_refused(home):
    outcome = home.run("grow")
    assert (outcome.kind, outcome.status, outcome.error) == (REFUSED, 413, "StateTooLarge")


@pytest.mark.parametrize(("call", "status", "message"), [
    (Call("mop", "get"), 404, "unknown class `mop`, did you mean `map`"),
    (Call("map", "putt"), 404, "unknown method of class `map` `putt`, did you mean `put`"),
    (Call("map", "methods"), 404, "unknown method of class `map` `methods`, expected"),
    (Call("set", "add"), 409, "the object has class `map`, expected class `set`"),
])  # fmt: skip
def test_what_is_not_there_is_refused_with_the_near_miss(call, status, message):
    state = ObjectState(TYPED, ContentState(), class_name="map")
    after, outcome = run(BUILT_IN, state, call, 1.0, 1.0)
    assert after is state
    assert (outcome.kind, outcome.status) == (REFUSED, status)
    assert outcome.message.startswith(message)


@pytest.mark.parametrize(("state", "status", "message"), [
    (None, 404, "there is no object"),
    (ObjectState(DELETED, ContentState()), 404, "there is no object"),
    (ObjectState(TYPED, ContentState(), class_name="map", expires=1.0), 404, "there is no object"),
    (ObjectState(PLAIN, ContentState()), 409, "the object has no class, expected class `map`"),
])  # fmt: skip
def test_what_is_no_typed_object_has_no_methods(state, status, message):
    after, outcome = run(BUILT_IN, state, Call("map", "range"), 1.0, 1.0)
    assert after is state
    assert (outcome.kind, outcome.status, outcome.message) == (REFUSED, status, message)


def test_the_etag_is_that_of_the_stream(home):
    home.run("append")
    assert home.state.etag == etag_of(b"x")
    home = LocalHome(BUILT_IN["set"])
    etag = home.state.etag
    home.call("add", member="x")
    assert home.state.etag is etag


def test_a_call_that_is_sent_twice_has_one_effect(home):
    first = numbered(home, 1, argument="a")
    home.run("append")
    again = numbered(home, 1, argument="a")
    assert again == first, "with the version of then"
    assert home.state.content.stream == b"xx"
    assert numbered(home, 2, argument="b").answer == pack("b")


def test_a_session_survives_the_change_of_the_home(home):
    first = numbered(home, 1, argument="a")
    home.move()
    assert numbered(home, 1, argument="a") == first
    assert home.state.content.stream == b"x"


def test_an_older_number_is_refused(home):
    numbered(home, 1)
    numbered(home, 5)
    outcome = numbered(home, 4)
    assert (outcome.kind, outcome.status, outcome.error) == (REFUSED, 409, "OlderNumber")


def test_a_call_without_a_change_is_kept_too(home):
    first = numbered(home, 1, "nothing")
    home.time += 5
    assert numbered(home, 1, "nothing") == first
    assert home.state.version == 1


def test_a_call_without_an_effect_is_run_again(home):
    assert numbered(home, 1, "fail", Refused("no", 409)).kind == REFUSED
    assert numbered(home, 1).kind == DONE


@pytest.mark.parametrize(("size", "kind"), [(LARGEST_KEPT, DONE), (LARGEST_KEPT + 1, GONE)])
def test_a_long_answer_is_not_kept(home, size, kind):
    answer = bytes(size - 3)
    first = numbered(home, 1, argument=answer)
    assert len(first.answer) == size
    again = numbered(home, 1, argument=answer)
    assert again == replace(first, kind=kind, answer=first.answer if kind == DONE else None)
    assert home.state.content.stream == b"x"


def test_the_least_recently_used_session_is_forgotten_and_must_be_opened_again(home):
    for number in range(MOST):
        numbered(home, 1, session=f"s{number}")
    numbered(home, 2, session="s0")
    numbered(home, 1, session="another")
    assert len(home.state.sessions) == MOST
    assert numbered(home, 3, session="s0").kind == DONE
    outcome = numbered(home, 2, session="s1")
    assert (outcome.kind, outcome.status, outcome.error) == (REFUSED, 409, "UnknownSession")
    assert numbered(home, 1, session="s1").kind == DONE


def test_methods_that_do_not_write_need_no_session(home):
    before = home.state
    assert numbered(home, 7, "look").kind == DONE
    assert home.state is before


@pytest.mark.parametrize(("session", "number"), [
    ("s", 0), ("s", -1), ("s", 1 << 63), ("s" * 129, 1), ("é", 1), ("\ud800", 1), ("\n", 1),
])  # fmt: skip
def test_numbers_and_ids_of_sessions_are_bounded(home, session, number):
    assert numbered(home, number, session=session).status == 400


def test_the_order_of_sessions_is_stored(home):
    for session in "bac":
        numbered(home, 1, session=session)
    numbered(home, 2, session="b")
    home.move()
    assert list(home.state.sessions) == ["a", "c", "b"]
    assert home.state.sessions["b"] == Session(2, pack(None), 5, home.time)
