"""Pools measured by REST, and values entered by an operator."""

import pytest

from sluice_controller.volumes import ordering
from sluice_core.errors import PeerError

PATH = "/volumes/pools/h@nbd%23fast"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """A request that waits checks again at once."""
    monkeypatch.setattr(ordering, "_STEP", 0.0)


@pytest.fixture
def calibrate(order, konnector):
    """A function that measures the pool to the end."""
    return lambda state="done", path="?wait=10", **more: order(
        "post", f"{PATH}/calibrate{path}", {"node": "n1", "seconds": 1, **more.pop("body", {})}, state, **more
    )


def test_what_was_measured_is_kept_with_who_ordered_it_and_where(calibrate, send, cinder, konnector):
    found = calibrate()
    assert (found["what"], found["data"]["size"], found["data"]["read_bw"]) == ("calibrate", 1, 9e7)
    (kept,) = send("get", "/volumes/pools")["measured"]
    assert (kept["pool"], kept["write_iops"], kept["node"]) == ("h@nbd#fast", 7000.0, "n1")
    assert kept["measured_by"] == found["created_by"]
    assert (cinder.state.volumes, konnector.volumes) == ({}, {})


def test_what_is_said_by_hand_has_no_node(send, cinder):
    body = {"read_bw": "90MBps", "write_bw": "80MBps", "read_iops": 9000, "write_iops": 7000}
    kept = send("put", f"{PATH}/calibration", body)
    assert (kept["node"], kept["measured_by"]) == (None, "admin")


def test_one_pool_is_measured_once_at_a_time(calibrate, message, konnector):
    konnector.figures = {}
    running = calibrate("under_way", "?wait=0.3")
    said = message("post", f"{PATH}/calibrate", {"node": "n1"})
    assert said == f"operation `{running['id']}` measures pool `h@nbd#fast` already"


def test_the_same_request_is_one_measurement(calibrate, send, konnector):
    first = calibrate(**{"Idempotency-Key": "k1"})
    konnector.faults["measure"] = PeerError("asked again")
    assert calibrate(**{"Idempotency-Key": "k1"}) == first


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        (PATH, {}, 400, "`node` is missing"),
        (PATH, {"node": "n2"}, 409, "node `n2` has no konnector, expected `n1`"),
        (PATH, {"node": "n9"}, 404, "no node `n9`"),
        (PATH, {"node": "n1", "seconds": 0}, 400, "expected whole seconds from 1 to 300"),
        (PATH, {"node": "n1", "size": 10**6}, 400, "expected a whole number of GiB from 1 to 1024"),
        ("/volumes/pools/h@nbd%23fats", {"node": "n1"}, 404, "did you mean `h@nbd#fast`"),
        ("/volumes/pools/h@rbd%23safe", {"node": "n1"}, 409, "reports no name of its back end"),
    ],
)
def test_what_cannot_be_measured_is_refused(message, konnector, path, body, status, said):
    assert said in message("post", f"{path}/calibrate", body, status)
