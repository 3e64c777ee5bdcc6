"""The classes of the shared log: `log_stripe` and `sequencer`."""

import pytest

from sluice_objects.classes.arguments import LARGEST_NUMBER
from sluice_objects.classes.log_stripe import MOST_BYTES, MOST_RECORDS, LogStripe
from sluice_objects.classes.sequencer import Sequencer
from sluice_objects.testing import LocalHome


@pytest.fixture
def stripe():
    home = LocalHome(LogStripe())
    home.call("write", epoch=0, first=10, count=5, object="batch")
    return home


@pytest.fixture
def sequencer():
    home = LocalHome(Sequencer())
    home.call("start", epoch=1)
    return home


def write(home, first, count=1, epoch=0, name="other"):
    return home.run("write", {"epoch": epoch, "first": first, "count": count, "object": name})


@pytest.mark.parametrize(("first", "count", "written"), [
    (10, 5, True), (14, 1, True), (9, 2, True), (14, 9, True), (0, 100, True), (12, 1, True), (15, 1, False),
    (9, 1, False), (0, 10, False), (1000, 7, False),
])  # fmt: skip
def test_a_position_is_written_once(stripe, first, count, written):
    before = stripe.state
    outcome = write(stripe, first, count)
    assert outcome.status == (412 if written else 200)
    if written:
        assert (outcome.error, outcome.message) == ("Written", "positions 10 to 14 are written")
        assert stripe.state is before
    else:
        assert stripe.call("read", epoch=0, position=first) == {"first": first, "count": count, "object": "other"}


@pytest.mark.parametrize("position", [10, 14])
def test_a_position_is_read_with_its_batch(stripe, position):
    assert stripe.call("read", epoch=0, position=position) == {"first": 10, "count": 5, "object": "batch"}


@pytest.mark.parametrize("position", [9, 15, 1000])
def test_nothing_is_read_where_nothing_was_written(stripe, position):
    outcome = stripe.refusal("read", epoch=0, position=position)
    assert (outcome.status, outcome.error) == (404, "Unwritten")


def test_a_filled_position_cannot_be_written(stripe):
    stripe.call("fill", epoch=0, first=15, count=2)
    assert stripe.call("read", epoch=0, position=16) == {"first": 15, "count": 2, "object": None}
    assert write(stripe, 16).error == "Written"
    assert stripe.refusal("fill", epoch=0, first=14).error == "Written"


def test_trimmed_positions_are_gone_for_readers_and_writers(stripe):
    write(stripe, 15)
    assert stripe.call("trim", epoch=0, position=15) == {"trimmed": 15, "records": 1}
    for outcome in (
        stripe.refusal("read", epoch=0, position=14),
        stripe.refusal("fill", epoch=0, first=3),
        write(stripe, 14, 9),
    ):
        assert (outcome.status, outcome.error) == (410, "Trimmed")
    assert stripe.call("trim", epoch=0, position=3) == {"trimmed": 15, "records": 1}
    assert stripe.call("read", epoch=0, position=15)["object"] == "other"


def test_a_record_that_is_trimmed_in_part_stays(stripe):
    assert stripe.call("trim", epoch=0, position=12) == {"trimmed": 12, "records": 1}
    assert stripe.refusal("read", epoch=0, position=11).error == "Trimmed"
    assert stripe.call("read", epoch=0, position=12)["object"] == "batch"


def test_a_sealed_stripe_refuses_earlier_epochs(stripe):
    assert stripe.call("seal", epoch=3) == {"highest": 14}
    for outcome in (
        write(stripe, 15, epoch=2),
        stripe.refusal("read", epoch=2, position=10),
        stripe.refusal("fill", epoch=2, first=15),
        stripe.refusal("trim", epoch=2, position=15),
        stripe.refusal("seal", epoch=3),
    ):
        assert (outcome.status, outcome.error) == (409, "StaleEpoch")
    assert write(stripe, 15, epoch=3).status == 200
    assert stripe.call("seal", epoch=4) == {"highest": 15}


def test_the_highest_position_survives_a_trim():
    stripe = LocalHome(LogStripe())
    assert stripe.call("seal", epoch=1) == {"highest": -1}
    stripe.call("write", epoch=1, first=4, object="batch")
    stripe.call("trim", epoch=1, position=5)
    assert stripe.call("seal", epoch=2) == {"highest": 4}
    assert stripe.call("show") == {"epoch": 2, "trimmed": 5, "highest": 4, "records": 0, "bytes": 0}


def test_a_stripe_holds_so_many_records():
    stripe = LocalHome(LogStripe())
    for position in range(MOST_RECORDS):
        assert write(stripe, position, name="b").status == 200
    outcome = write(stripe, MOST_RECORDS)
    assert (outcome.status, outcome.error) == (413, "StripeFull")
    assert stripe.call("show")["records"] == MOST_RECORDS


def test_a_stripe_holds_so_many_bytes():
    stripe = LocalHome(LogStripe())
    position = 0
    while write(stripe, position, name="n" * 1000).status == 200:
        position += 1
    items = stripe.state.content.items
    assert stripe.call("show")["bytes"] == sum(len(key) + len(value) for key, value in items.items())
    assert MOST_BYTES - 1100 < stripe.call("show")["bytes"] <= MOST_BYTES
    assert write(stripe, position, name="n" * 1000).error == "StripeFull"
    stripe.call("trim", epoch=0, position=1)
    assert write(stripe, position, name="n" * 1000).status == 200


def test_each_position_is_given_once(sequencer):
    assert [sequencer.call("next", epoch=1, count=count)["first"] for count in (3, 1, 10)] == [0, 3, 4]
    assert sequencer.call("tail") == {"tail": 14, "epoch": 1}


def test_a_sequencer_serves_its_epoch_alone(sequencer):
    sequencer.call("start", epoch=2, position=100)
    assert sequencer.refusal("next", epoch=1).error == "StaleEpoch"
    outcome = sequencer.refusal("next", epoch=3)
    assert (outcome.status, outcome.message) == (409, "epoch `3` did not begin, expected 2")
    assert sequencer.call("next", epoch=2) == {"first": 100}


def test_a_recovery_never_lowers_the_tail(sequencer):
    sequencer.call("next", epoch=1, count=50)
    assert sequencer.call("start", epoch=2, position=10) == {"tail": 50}
    assert sequencer.refusal("start", epoch=2, position=90).error == "StaleEpoch"
    assert sequencer.call("next", epoch=2) == {"first": 50}


def test_positions_end(sequencer):
    sequencer.call("start", epoch=2, position=LARGEST_NUMBER)
    assert sequencer.refusal("next", epoch=2).message == "the log has no positions left"
