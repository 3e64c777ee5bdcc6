"""Windows become rows: kept series, zeros, gaps, and the series that a new owner continues."""

import pytest

from sluice_actors.metric_history.collector import Changes, Collector
from sluice_actors.metric_history.samples import of_report, of_window
from sluice_actors.metrics.windows import ClosedWindow
from sluice_core.messages.bandwidth_report import BandwidthReport
from sluice_metric_history.records import SeriesKey, SeriesRecord
from sluice_metric_history.resolutions import RESOLUTIONS

SECONDS, TENS, MINUTES = RESOLUTIONS
START = 1_200_000_000
#: Seconds after the end of a second at which its row is due.
LATE = 0.7


class History:
    """A collector that begins at :data:`START`, and all rows that it wrote."""

    def __init__(self, room=100, known=(), start=START):
        self.collector = Collector(room, start - 0.5, known)
        self.written = {}

    def window(self, second, metric="PUTS_SEC", adds=True, period=1.0, **levels):
        closed = ClosedWindow(metric, second, period, levels)
        for sample in of_window(closed, adds):
            self.collector.add(sample)
        self.collector.add_silence(closed)

    def until(self, second):
        """Write all rows that are due at the end of ``second``."""
        for row in self.collector.rows(second + 1 + LATE):
            for name, raw in row.points.items():
                self.written[row.resolution.step, row.at, name] = next(row.resolution.unpack(raw))

    def seconds(self, values, metric="PUTS_SEC", **more):
        """A window with each of ``values`` (path → value) at the level of tenants, and rows."""
        for second, tenants in values:
            self.window(second, metric, **more, tenant=tenants, cluster={"": sum(tenants.values())})
            self.until(second)

    def key(self, path, metric="PUTS_SEC", level="tenant", rest=False):
        return SeriesKey(metric, level, path, rest)

    def line(self, path, first, last, step=1, **more):
        """The means of a series from one second to another; ``missing`` without a row."""
        record = self.collector.records[self.key(path, **more)]
        found = [self.written.get((step, at, record.id), "missing") for at in range(first, last, step)]
        return [one if one in (None, "missing") else pytest.approx(one.mean, rel=1e-4) for one in found]


def steady(first, last, **tenants):
    return [(second, dict(tenants)) for second in range(first, last)]


def test_a_path_has_a_series_from_the_next_ranking_on():
    history = History()
    history.seconds(steady(START, START + 14, AUTH_a=3.0))
    assert history.line("AUTH_a", START + 11, START + 14) == [3.0] * 3
    assert history.line("", START + 11, START + 14, level="cluster") == [3.0] * 3
    assert set(history.collector.changes.put) == {history.key("AUTH_a"), history.key("", level="cluster")}


def test_a_second_without_requests_is_0_and_one_without_windows_a_gap():
    history = History()
    history.seconds(steady(START, START + 12, AUTH_a=3.0, AUTH_b=1.0))
    history.seconds([(START + 12, {"AUTH_b": 1.0}), (START + 13, {})])
    history.until(START + 15)
    assert history.line("AUTH_a", START + 11, START + 16) == [3.0, 0.0, 0.0, None, None]


def test_a_metric_that_does_not_add_up_has_no_value_where_nobody_counted():
    history = History()
    history.seconds(steady(START, START + 12, AUTH_a=3.0), adds=False)
    history.seconds([(START + 12, {})], adds=False)
    assert history.line("AUTH_a", START + 11, START + 13) == [3.0, None]


def test_tens_and_minutes_are_written_once_they_are_over_and_only_whole_ones():
    start = START + 3
    history = History(start=start)
    history.seconds(steady(start, START + 125, AUTH_a=2.0))
    assert history.line("AUTH_a", START, START + 20, step=10) == ["missing", 2.0]
    assert history.line("AUTH_a", START, START + 120, step=60) == ["missing", 2.0]


def test_the_busiest_are_kept_and_the_rest_is_their_sum():
    history = History(room=3)
    tenants = {f"AUTH_{number}": float(number) for number in range(1, 6)}
    history.seconds([(second, tenants) for second in range(START, START + 25)])
    kept = {key.path for key in history.collector.records if key.level == "tenant" and not key.rest}
    assert kept == {"AUTH_5"}
    assert history.line("", START + 22, START + 25, rest=True) == [10.0] * 3
    assert history.collector.records[history.key("", rest=True)].of == 4
    assert len(history.collector.records) == 3


def test_no_more_series_than_there_is_room():
    history = History(room=7)
    tenants = {f"AUTH_{number}": 1.0 for number in range(50)}
    for second in range(START, START + 45):
        for metric in ("PUTS_SEC", "GETS_SEC", "THROUGHPUT"):
            history.window(second, metric, tenant=tenants, container=tenants, cluster={"": 50.0})
        history.until(second)
        assert len(history.collector.records) <= 7


def test_who_is_displaced_is_forgotten_with_the_points():
    history = History(room=3)
    history.seconds(steady(START, START + 21, AUTH_a=1.0, AUTH_b=0.5))
    old = history.collector.records[history.key("AUTH_a")]
    history.seconds(steady(START + 21, START + 60, AUTH_a=1.0, AUTH_b=90.0))
    assert old in history.collector.changes.forget
    assert history.key("AUTH_b") in history.collector.records


def test_a_new_owner_goes_on_with_the_series_that_are_there():
    before = History()
    before.seconds(steady(START, START + 12, AUTH_a=3.0))
    known = list(before.collector.records.values())
    after = History(known=known, start=START + 20)
    after.seconds(steady(START + 20, START + 32, AUTH_a=4.0))
    assert after.line("AUTH_a", START + 20, START + 22) == [4.0, 4.0]
    assert set(after.collector.records.values()) == set(known)
    assert after.collector.changes == Changes()


def test_a_new_owner_with_less_room_forgets_what_is_too_much():
    before = History()
    before.seconds(steady(START, START + 12, AUTH_a=3.0, AUTH_b=1.0))
    after = History(room=2, known=before.collector.records.values())
    assert len(after.collector.records) == 2
    assert len(after.collector.changes.forget) == 1


def test_a_series_that_somebody_forgot_is_kept_no_more_and_begins_anew_when_it_moves():
    history = History()
    history.seconds(steady(START, START + 12, AUTH_a=3.0, AUTH_b=1.0))
    old = history.collector.records[history.key("AUTH_a")]
    there = {key: one for key, one in history.collector.records.items() if key.path != "AUTH_a"}
    history.collector.changes = Changes()
    history.collector.reconcile(there, START + 12)
    assert history.key("AUTH_a") not in history.collector.records
    history.seconds(steady(START + 12, START + 22, AUTH_a=3.0))
    assert history.collector.records[history.key("AUTH_a")].id != old.id


def test_a_series_that_another_host_left_is_forgotten_but_not_one_that_it_just_began():
    history = History()
    old = SeriesRecord("s1", "PUTS_SEC", "tenant", "AUTH_x", 1, START - 200)
    new = SeriesRecord("s2", "PUTS_SEC", "tenant", "AUTH_y", 1, START - 20)
    history.collector.reconcile({one.key: one for one in (old, new)}, START)
    assert history.collector.changes.forget == [old]


def test_after_a_long_sleep_everything_begins_anew():
    history = History()
    history.seconds(steady(START, START + 12, AUTH_a=3.0))
    wake = START + 3600
    history.until(wake)
    history.seconds(steady(wake + 2, wake + 5, AUTH_a=7.0))
    assert history.line("AUTH_a", START + 12, START + 14) == ["missing"] * 2
    assert history.line("AUTH_a", wake + 2, wake + 5) == [7.0] * 3


def test_a_metric_of_ten_seconds_has_no_points_of_one_and_weighs_in_a_minute():
    history = History()
    for second in range(START, START + 185):
        if second % 10 == 9:  # the window is closed before the row of its last second is due
            history.window(second - 9, "NODE_CPU", period=10.0, node={"n1": (second - 9) % 60 / 100})
        history.until(second)
    assert history.line("n1", START + 100, START + 103, metric="NODE_CPU", level="node") == ["missing"] * 3
    tens = history.line("n1", START + 100, START + 130, step=10, metric="NODE_CPU", level="node")
    assert tens == [0.4, 0.5, 0.0]
    assert history.line("n1", START + 60, START + 120, step=60, metric="NODE_CPU", level="node") == [0.25]


# -- bandwidth


def flow(account, container="", **values):
    row = {"account": account, "container": container, "method": "GET", "policy": -1}
    return {**row, "measured": 0.0, "share": -1.0, "floor": 0.0, "ceiling": 0.0, **values}


def node(name="n1", **values):
    row = {"node": name, "server": "", "side": "proxy", "method": "GET", "capacity": 0.0, "assigned": 0.0}
    return {**row, "measured": 0.0, **values}


def report(second, flows=(), nodes=(), parts=()):
    return BandwidthReport(second + 1.2, "h1", 1, 1, tuple(flows), tuple(nodes), tuple(parts))


def of_bandwidth(seconds, **more):
    history = History()
    for second in range(START, START + seconds):
        for sample in of_report(report(second, **more)):
            history.collector.add(sample)
        history.until(second)
    return history


def test_flows_have_measured_share_floor_and_ceiling_where_there_are_such():
    flows = [
        flow("AUTH_a", measured=5.0, share=6.0, floor=4.0),
        flow("AUTH_a", measured=1.0, share=1.0, policy=2),
        flow("AUTH_b", "c", measured=2.0),
    ]
    history = of_bandwidth(13, flows=flows, nodes=[node(measured=8.0, capacity=9.0)])

    def last(path, metric, level="tenant"):
        return history.line(path, START + 12, START + 13, metric=metric, level=level)

    assert last("AUTH_a", "GET_BW_MEASURED") == [6.0]
    assert last("AUTH_a", "GET_BW_SHARE") == [7.0]
    assert last("AUTH_a", "GET_BW_FLOOR") == [4.0]
    assert last("AUTH_a", "GET_BW_CEILING") == [None]
    assert last("AUTH_b/c", "GET_BW_MEASURED", "container") == [2.0]
    assert last("AUTH_b/c", "GET_BW_SHARE", "container") == [None]
    assert last("", "GET_BW_MEASURED", "cluster") == [8.0]
    assert last("n1/proxy", "NODE_GET_BW_CAPACITY", "node") == [9.0]


def test_devices_add_up_what_flows_move_there_and_parts_tell_tenants_apart():
    part = {"node": "n1", "side": "storage_node", "device": "d1", "method": "GET", "account": "AUTH_a"}
    rates = {"share": 3.0, "measured": 2.0}
    parts = [part | rates, part | rates, part | rates | {"account": "AUTH_b"}]
    parts.append(part | rates | {"side": "proxy", "device": ""})
    history = of_bandwidth(13, nodes=[node()], parts=parts)

    def last(path, metric, level):
        return history.line(path, START + 12, START + 13, metric=metric, level=level)

    assert last("n1/d1", "DEVICE_GET_BW_MEASURED", "device") == [6.0]
    assert last("n1/d1/AUTH_a", "PART_GET_BW_MEASURED", "part") == [4.0]
    assert last("n1/d1/AUTH_b", "PART_GET_BW_SHARE", "part") == [3.0]
    assert last("n1/proxy/AUTH_a", "PART_GET_BW_MEASURED", "part") == [2.0]


def test_a_second_in_which_no_node_was_heard_is_a_gap():
    history = of_bandwidth(13, flows=[flow("AUTH_a", measured=5.0)], nodes=[node()])
    for sample in of_report(report(START + 13)):
        history.collector.add(sample)
    history.until(START + 13)
    assert history.line("AUTH_a", START + 12, START + 14, metric="GET_BW_MEASURED") == [5.0, None]
