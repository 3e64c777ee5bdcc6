from benchmarks.harness.scale import Scale
from benchmarks.motifs import mount_trace, replacement, runtime, trace_replay
from benchmarks.motifs.replacement import LOCALITIES, PERCENTS, STRONG, replay, replay_clairvoyant
from benchmarks.motifs.traces import Trace, make_trace

from sluice_motifs.replacement.lru import Lru


def test_first_opens_are_no_misses_and_victims_make_room_by_bytes():
    trace = Trace(opens=[0, 1, 0, 2, 1, 0, 0], sizes=[10, 10, 15, 0])
    found = replay(trace, Lru(), 25)  # 2 evicts 1, 1 evicts 0, 0 evicts 2
    assert (found.opens, found.hits) == (4, 2)
    assert (found.opened_bytes, found.missed_bytes) == (40, 20)


def test_an_item_larger_than_the_space_is_missed_each_time_and_sends_nobody_away():
    found = replay(Trace(opens=[0, 1, 1, 0], sizes=[10, 50]), Lru(), 25)
    assert (found.opens, found.hits, found.missed_bytes) == (2, 1, 50)


def test_who_knows_the_future_contracts_what_is_opened_last_of_all():
    trace = Trace(opens=[0, 1, 2, 0, 1, 2, 0, 1], sizes=[10, 10, 10])
    assert replay(trace, Lru(), 20).hits == 0
    found = replay_clairvoyant(trace, 20)  # 2 is evicted both times
    assert (found.opens, found.hits, found.missed_bytes) == (5, 4, 10)


def test_a_trace_is_the_same_for_the_same_seed_and_as_local_as_was_asked():
    traces = {locality.name: make_trace(locality, 5000, seed=2) for locality in LOCALITIES}
    assert make_trace(STRONG, 5000, seed=2) == traces["strong"]
    assert make_trace(STRONG, 5000, seed=3) != traces["strong"]
    items = {name: len(set(trace.opens)) for name, trace in traces.items()}
    assert 5000 * 0.01 * 0.5 < items["strong"] < 5000 * 0.02
    assert items["strong"] < items["medium"] / 4 < items["none"] / 8
    assert all(
        (size > 0) == (slot in set(traces["none"].opens)) for slot, size in enumerate(traces["none"].sizes[:100])
    )


def test_the_part_reports_hits_and_misses_for_each_locality(tmp_path, monkeypatch):
    monkeypatch.setattr(replacement, "LOCALITIES", (STRONG,))
    figures = replacement.measure(Scale(tmp_path, quick=True))
    assert [figure.name for figure in figures] == ["motif hit rate", "motif hit rate", "motif byte misses"]
    assert [figure.details["percent"] for figure in figures[:2]] == [20.0, 50.0]
    assert figures[0].value == figures[0].details["hits"]["lru"] <= figures[1].value
    misses = figures[2].details["byte_misses"]
    assert set(misses) == {"lru", "lfu", "fifo", "clock", "s4lru", "random", "clairvoyant"}
    assert all(len(line) == len(PERCENTS) and line[-1] == 0.0 for line in misses.values())


def test_a_replay_in_a_mount_has_hits_of_each_part_and_what_reads_wait_for():
    parts = [
        trace_replay.Part(name, target, 40.0 * place, ended=40.0 * (place + 1))
        for place, ((name, _), target) in enumerate(zip(trace_replay.PARTS, (9000, 200, 0, 9000, 9000), strict=True))
    ]
    for part, seconds in zip(parts, (0.001, 0.002, 0.06, 0.003, 0.0011), strict=True):
        part.times = [(part.began, seconds), (part.began + 1, seconds)]
    samples = [
        trace_replay.Sample(at, used, 0, hits, misses, "kept")
        for at, used, hits, misses in (
            (0.0, 1000, 0, 0),
            (40.0, 1000, 10, 0),
            (70.0, 201, 17, 2),
            (80.0, 200, 18, 2),
            (110.0, 5, 18, 9),
            (120.0, 0, 18, 12),
            (200.0, 1000, 30, 12),
        )
    ]
    assert [mount_trace.hit_rate(part, samples) for part in parts[:3]] == [100.0, 80.0, 0.0]
    found = mount_trace.figures(parts, samples, Trace([0] * 10, [500, 500]))
    assert [round(one.value, 3) for one in found] == [0.5, 0.5, 60.0, 1.1]
    assert [one.reached for one in found] == [True, True, None, True]


def test_a_replay_is_compared_with_its_targets_and_keeps_its_reads():
    targets = (10_000, 200, 0, 10_000, 10_000)
    parts = [
        trace_replay.Part(name, target, 40.0 * place, ended=40.0 * (place + 1))
        for place, ((name, _), target) in enumerate(zip(trace_replay.PARTS, targets, strict=True))
    ]
    for part, seconds in zip(parts, (1.0, 2.0, 4.0, 3.0, 1.1), strict=True):
        part.times = [(part.began, 9.0), (part.began + 1, seconds), (part.began + 2, seconds)]
    samples = [
        trace_replay.Sample(at, used, contracted, int(at), int(at / 2), "kept")
        for at, used, contracted in (
            (1.0, 1000, 0),
            (41.0, 1000, 0),
            (45.0, 900, 1),
            (50.0, 700, 3),
            (69.0, 300, 7),
            (70.5, 203, 8),
            (74.0, 190, 9),
            (105.0, 100, 9),
            (110.0, 0, 10),
            (190.0, 900, 1),
        )
    ]
    found = trace_replay._figures(parts, samples, 10, 12, 1000)
    assert [round(one.value, 3) for one in found] == [1.5, 0.0, 0.275, 1.1]
    assert [one.reached for one in found] == [True, None, None, True]
    kept = found[-1].details["parts"]
    assert [one["reads"] for one in kept[:2]] == [
        [[0.0, 9000.0], [1.0, 1000.0], [2.0, 1000.0]],
        [[40.0, 9000.0], [41.0, 2000.0], [42.0, 2000.0]],
    ]


def test_the_runtime_is_measured_in_four_figures(tmp_path):
    found = runtime.measure(Scale(tmp_path, quick=True))
    assert len(found) == 4
    assert all(one.value > 0 for one in found[1:])
