"""``metric history`` and ``metric series`` of docs/admin/history.md, against a real API."""

import json
import struct
import time

import pytest

from sluice_metric_history.operations import write_row, write_series
from sluice_metric_history.records import SeriesRecord
from sluice_metric_history.resolutions import RESOLUTIONS, invert


@pytest.fixture
def busy(store):
    """``AUTH_a`` put 2.5 objects in the last complete minute, and none was measured before."""
    minute = int(time.time()) // 60 * 60 - 60
    record = SeriesRecord("s1", "PUTS_SEC", "tenant", "AUTH_a", 1, minute)
    rest = SeriesRecord("s2", "PUTS_SEC", "tenant", "", 1, minute, rest=True, of=3)
    store.run(write_series(store.keys, [record, rest]))
    point = invert(struct.pack("<ffHH", 2.5, 2.5, 0, 0))
    store.run(write_row(store.keys, RESOLUTIONS[-1], minute, {"s1": point, "s2": point}))
    return minute


def test_steps_are_rows_and_gaps_are_empty(sluice, busy):
    words = ("metric", "history", "show", "PUTS_SEC", "--target", "AUTH_a", f"--from={busy - 60}", f"--to={busy + 60}")
    found = json.loads(sluice(*words, "--step", "60", "-f", "json").out)
    assert found == [
        {"Time": busy - 60, "Mean": None, "Min": None, "Max": None, "P95": None},
        {"Time": busy, "Mean": 2.5, "Min": 2.5, "Max": 2.5, "P95": 2.5},
    ]
    assert time.strftime("%Y-%m-%dT%H:%M:00.000Z", time.gmtime(busy)) in sluice(*words, "--step", "60").out


def test_the_rest_of_a_level_is_shown_as_csv_too(sluice, busy):
    words = ("metric", "history", "show", "PUTS_SEC", "--rest", "tenant", f"--from={busy}", f"--to={busy + 60}")
    shown = sluice(*words, "--step", "60", "-f", "csv").out.splitlines()
    assert shown == ['"Time","Mean","Min","Max","P95"', f'"{busy}",2.5,2.5,2.5,2.5']


def test_times_are_said_as_to_the_api(sluice, client, busy):
    assert client.metric_history("PUTS_SEC", "AUTH_a", begin="-3600", step=60)["points"][0][1] is None
    refused = sluice("metric", "history", "show", "PUTS_SEC", "--target", "AUTH_a", "--from=yesterday", status=1)
    assert "`from` is `yesterday`" in refused.err


def test_series_are_listed_and_forgotten(sluice, busy):
    listed = json.loads(sluice("metric", "series", "list", "-f", "json").out)
    assert [(one["Target"], one["Rest Of"]) for one in listed] == [("", 3), ("AUTH_a", "")]
    assert sluice("metric", "series", "delete", "AUTH_a").out == "AUTH_a: 1 series forgotten\n"
    assert "only the busiest" in sluice("metric", "history", "show", "PUTS_SEC", "--target", "AUTH_a", status=1).err
