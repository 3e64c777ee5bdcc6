import pytest

from sluice_dashboard.volumes.operations import Wanted, ended, operation_row, under_way


def operation(what, step="", state="under_way", reason="", number=1, **data):
    return {
        "id": f"o{number}",
        "what": what,
        "state": state,
        "reason": reason,
        "step": step,
        "volume": None,
        "project": "p",
        "data": data,
        "created_at": "2026-01-01T00:00:00+00:00",
        "ended_at": None,
        "created_by": "alice@acme",
    }


@pytest.mark.parametrize(
    ("what", "step", "progress", "waits"),
    [
        ("create", "", (0, 2), "asks Cinder"),
        ("create", "asked", (1, 2), "waits for Cinder"),
        ("attach", "exported", (2, 3), "waits for the konnector"),
        ("calibrate", "measuring", (4, 6), "measures: write_bw"),
        ("attach", "a step of a newer API", (0, 3), ""),
        ("something new", "", (0, 2), "asks Cinder"),
    ],
)
def test_an_operation_under_way_says_how_far_it_is(what, step, progress, waits):
    phase = {"phase": "write_bw"} if step == "measuring" else {}
    row = operation_row(operation(what, step, **phase))
    assert ((row.step, row.steps), row.detail) == (progress, waits)


def test_a_failed_operation_says_why_and_has_no_progress():
    row = operation_row(operation("attach", "exported", "failed", "`/dev/loop0` is held by `dd`"))
    assert (row.failed, row.steps, row.detail) == (True, 0, "`/dev/loop0` is held by `dd`")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"node": "node1", "device": "/dev/loop7"}, "node node1, device /dev/loop7"),
        ({"size": 4, "size_seen": "now"}, "4 GiB, the new size is seen now"),
        ({"read_bw": 2.5e8, "write_bw": 1e6, "read_iops": 1, "write_iops": 1}, "reads 250 MB/s, writes 1 MB/s"),
        ({"fenced": False}, "the back end has not ended its access"),
    ],
)
def test_what_came_of_an_operation_is_said(data, text):
    assert operation_row(operation("attach", state="done", **data)).detail == text


def test_the_newest_are_first_and_some_are_brought_further(stub, client):
    listed = [operation("create", number=number) for number in range(5)]
    stub.enqueue(200, {"operations": listed, "next_marker": None})
    stub.enqueue(200, {**listed[4], "state": "done"})
    for one in listed[3:1:-1]:
        stub.enqueue(200, {**one, "step": "asked"})
    rows = under_way(client, Wanted(volume="v1"))
    assert [(one.id, one.step) for one in rows] == [("o3", 1), ("o2", 1), ("o1", 0), ("o0", 0)]
    assert stub.paths[:2] == ["/volumes/operations?state=under_way&volume=v1", "/volumes/operations/o4"]


def test_of_operations_that_have_ended_those_of_a_pool_or_a_project_are_found(stub, client):
    listed = [
        operation("calibrate", state="done", pool="a"),
        operation("calibrate", state="failed", number=2, pool="b"),
        {**operation("create", state="done", number=3), "project": "q"},
        operation("create", number=4),
    ]
    for _ in range(2):
        stub.enqueue(200, {"operations": listed, "next_marker": None})
    assert [one.id for one in ended(client, Wanted(pool="b"))] == ["o2"]
    assert [one.id for one in ended(client, Wanted(project="p"))] == ["o2", "o1"]
