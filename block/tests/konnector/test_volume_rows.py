"""Rows of volumes: totals that only grow, over all restarts."""

from dataclasses import replace

import pytest

from sluice_block.konnector.agent_link import QUANTILES, VolumeRows
from sluice_block.stack.page import BUCKETS, Counters, Histogram
from sluice_core.metrics.sketch import estimate_quantile, unpack
from sluice_volumes.metrics import VOLUME_LATENCY

PATH = "AUTH_acme/7"


def counters(reads=0, latency=0, **more):
    """``latency`` is the bucket of all reads."""
    histogram = Histogram(tuple(reads if number == latency else 0 for number in range(BUCKETS)))
    none = dict.fromkeys(Counters.__slots__, 0)
    given = {"reads": reads, "read_bytes": 4096 * reads, "read_latency": histogram, "write_latency": Histogram()}
    return Counters(**{**none, **given, **more})


@pytest.fixture
def rows():
    return VolumeRows()


def test_a_row_begins_at_zero_when_the_page_is_first_seen(rows):
    rows.update({PATH: counters(reads=1000, writes=7, under_way=3)})
    assert rows.changed(0)[PATH][2] == (0, 0, 0, 0, 3)
    rows.update({PATH: counters(reads=1010, writes=8, written_bytes=5)})
    assert rows.changed(0)[PATH][2] == (40960, 5, 10, 1, 0)


def test_a_page_that_begins_anew_makes_another_row_that_counts_in_full(rows):
    rows.update({PATH: counters(reads=1000)})
    before = rows.changed(0)[PATH]
    rows.update({PATH: counters(reads=5)})
    after = rows.changed(0)[PATH]
    assert after[1] > before[1]
    assert after[2][2] == 5


def test_only_what_changed_is_sent_and_all_of_it_to_another_agent(rows):
    rows.update({PATH: counters(reads=1), "AUTH_acme/8": counters()})
    rows.note_sent([PATH, "AUTH_acme/8"], 0)
    assert rows.changed(1) == {}
    rows.update({PATH: counters(reads=2), "AUTH_acme/8": counters()})
    assert list(rows.changed(1)) == [PATH]
    rows.forget_sent()
    assert set(rows.changed(1)) == {PATH, "AUTH_acme/8"}


def test_a_quiet_row_is_sent_again_before_the_agent_forgets_it(rows):
    rows.update({PATH: counters()})
    rows.note_sent([PATH], 0)
    assert list(rows.changed(1000)) == [PATH]


def test_a_volume_that_is_detached_has_no_row(rows):
    rows.update({PATH: counters()})
    rows.update({})
    assert rows.changed(0) == {}


def test_latencies_are_a_sketch_of_reads_and_writes_without_those_of_before(rows):
    rows.update({PATH: counters(reads=100, latency=90)})
    rows.update({PATH: counters(reads=100, latency=90)})
    assert rows.sketches([PATH]) == {VOLUME_LATENCY: [[]]}
    now = counters(reads=100, latency=90)
    slow = Histogram(tuple(4 if number == 80 else 0 for number in range(BUCKETS)))
    rows.update({PATH: replace(now, write_latency=slow)})
    ((packed,),) = rows.sketches([PATH]).values()
    sketch = unpack(packed)
    assert sum(sketch.values()) == 4
    middle = 2 ** (10 + 79 // 4) * (1 + (79 % 4 + 0.5) / 4) / 1e9
    for _, quantile in QUANTILES.values():
        assert estimate_quantile(sketch, quantile) == pytest.approx(middle, rel=0.06)
