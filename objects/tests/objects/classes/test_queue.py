import pytest

from sluice_objects.classes.arguments import LARGEST_VALUE
from sluice_objects.classes.queue import Queue
from sluice_objects.testing import LocalHome


@pytest.fixture
def home():
    home = LocalHome(Queue())
    for value in ("first", "second"):
        home.call("push", value=value)
    return home


def test_messages_come_in_order_and_go_when_they_are_acknowledged(home):
    assert home.call("peek") == {"id": 2, "value": "first", "pops": 0}
    popped = home.call("pop")
    assert popped == {"id": 2, "receipt": 4, "value": "first", "pops": 1}
    assert home.call("depth") == {"ready": 1, "hidden": 1}
    home.call("acknowledge", id=2, receipt=4)
    assert home.call("depth") == {"ready": 1, "hidden": 0}
    home.call("acknowledge", id=3, receipt=home.call("pop")["receipt"])
    assert len(home.state.content.items) == 0
    assert (home.call("pop"), home.call("peek")) == (None, None)


def test_an_empty_queue_does_not_change():
    home = LocalHome(Queue())
    before = home.state
    assert home.call("pop") is None
    assert home.state is before


def test_a_message_is_handed_out_again_before_later_ones(home):
    first = home.call("pop", timeout=10)
    home.time += 10
    assert home.call("depth") == {"ready": 2, "hidden": 0}
    assert home.call("peek") == {"id": 2, "value": "first", "pops": 1}
    again = home.call("pop")
    assert (again["id"], again["pops"]) == (2, 2)
    assert again["receipt"] > first["receipt"]
    assert home.refusal("acknowledge", id=2, receipt=first["receipt"]).status == 409
    home.call("acknowledge", id=2, receipt=again["receipt"])
    assert home.refusal("acknowledge", id=2, receipt=again["receipt"]).status == 404


def test_a_late_consumer_acknowledges_while_nobody_else_got_the_message(home):
    popped = home.call("pop", timeout=10)
    home.time += 100
    home.call("acknowledge", id=2, receipt=popped["receipt"])
    assert home.call("pop")["value"] == "second"


def test_a_message_that_is_ready_is_not_acknowledged(home):
    popped = home.call("pop", timeout=10)
    home.time += 10
    home.call("pop")
    home.call("pop")
    home.time += 30
    home.call("pop", timeout=1)
    outcome = home.refusal("acknowledge", id=3, receipt=popped["receipt"])
    assert (outcome.status, outcome.message) == (404, "message `3` is not handed out")


def test_time_outs_that_are_short_end_before_long_ones(home):
    home.call("pop", timeout=60)
    home.call("pop", timeout=5)
    home.time += 5
    assert home.call("depth") == {"ready": 1, "hidden": 1}
    assert home.call("pop")["value"] == "second"


@pytest.mark.parametrize("ahead", [-300.0, 300.0])
def test_a_new_home_gives_consumers_their_whole_time_again(home, ahead):
    home.call("pop", timeout=10)
    home.move(home.time + ahead)
    assert home.call("depth") == {"ready": 1, "hidden": 1}
    home.time = max(home.time, home.state.clock) + 9.5
    assert home.call("peek")["value"] == "second"
    home.time += 0.5
    assert home.call("pop")["value"] == "first"


def test_the_largest_value_fits_into_an_answer(home):
    largest = bytes(LARGEST_VALUE - 5)
    queue = LocalHome(Queue())
    queue.call("push", value=largest)
    assert queue.call("pop")["value"] == largest
    assert queue.refusal("push", value=largest + b"x").status == 413
