"""The adapter reads recorded answers of Cinder, and the fake Cinder refuses with Cinder's texts."""

import pytest
from tests.support.recordings.cinder_answers import ADMINISTRATOR, MEMBER, STEPS, STRANGER, recorded, replayed, told

from sluice_core.errors import NotFound
from sluice_volumes.messages import Pool
from sluice_volumes.testing.fake_cinder import FakeCinder


@pytest.mark.parametrize("step", STEPS)
def test_an_answer_is_read_as_when_it_was_recorded(step):
    found = recorded()[step]
    assert told(replayed(step), STEPS[step][1], dict(found["ids"])) == found["told"]


def test_what_a_caller_may_not_see_is_empty():
    seen, all_of_it = (recorded()[f"volume seen{who}"]["told"] for who in ("", " by an administrator"))
    assert (seen["pool"], {**all_of_it, "pool": ""}) == ("", seen)
    assert all_of_it["pool"]


def test_a_connection_is_told_to_who_attaches_and_not_in_lists():
    made, (listed,) = (recorded()[name]["told"] for name in ("attachment", "attachments"))
    assert made["connection"]["driver_volume_type"] == "nbd"
    assert (listed["id"], listed["connection"]) == (made["id"], {})
    with pytest.raises(NotFound):
        replayed("attachment gone").attachment(made["id"])


@pytest.fixture(scope="module")
def of_the_fake():
    """The result of each step with the fake, in their order; ids by their names."""
    fake = FakeCinder(Pool("node1@nbd#fast", -1.0, -1.0, {"fabric": "nbd"}, specs={"volume_backend_name": "nbd"}))
    fake.state.quota = 1
    views = {
        ADMINISTRATOR: fake,
        MEMBER: fake.as_caller("token", "project"),
        STRANGER: fake.as_caller("token", "another"),
    }
    ids, found = {}, {}
    for name, (who, step) in STEPS.items():
        found[name] = named(told(views[who], step, ids), ids)
    return found


def named(outcome, ids):
    if not isinstance(outcome, str):
        return outcome
    for name, value in ids.items():
        outcome = outcome.replace(value, f"({name})")
    return outcome


@pytest.mark.parametrize("step", STEPS)
def test_the_fake_refuses_what_cinder_refuses_in_its_words(of_the_fake, step):
    found = recorded()[step]
    expected = named(found["told"], found["ids"])
    assert isinstance(expected, str) == isinstance(of_the_fake[step], str), (expected, of_the_fake[step])
    if isinstance(expected, str):
        assert of_the_fake[step] == expected


@pytest.mark.parametrize(
    "step",
    [
        "attachment",
        "attachment begun",
        "attachment seen",
        "volume being attached",
        "volume in use",
        "snapshot",
        "volume",
    ],
)
def test_the_fake_has_the_statuses_of_cinder(of_the_fake, step):
    assert of_the_fake[step]["status"] == recorded()[step]["told"]["status"]
