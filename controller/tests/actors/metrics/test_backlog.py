"""The batches that the backlog keeps."""

import pytest

from sluice_actors.metrics import aggregator_pool as backlogs


@pytest.mark.parametrize(("limit", "kept"), [(1000, [1003.0, 1004.0, 1005.0]), (8, [1004.0, 1005.0])])
def test_a_backlog_is_bounded_by_time_and_by_size(limit, kept, monkeypatch):
    monkeypatch.setattr(backlogs, "BYTES", limit)
    backlog = backlogs.Backlog()
    for second in range(6):
        backlog.add("M", b"1234", 1000.0 + second, 2.0)
    assert [came for came, _ in backlog.since("M", 0.0)] == kept
    backlog.add("M", b"1234", 500.0, 2.0)  # the clock was set back
    assert [came for came, _ in backlog.since("M", 0.0)] == [500.0]
    assert list(backlog.decoded("M", 0.0)) == []
