"""Uploaded metrics: the verdicts of a trial, and a meter whose metrics change during requests."""

from __future__ import annotations

import hashlib

import pytest

from sluice_code.code_store import BadUpload, CodeStore
from sluice_code.native_trial import Trial, try_code
from sluice_core.describe import MetricInfo
from sluice_core.messages.nodes import Counters, Hello
from sluice_core.messages.policies import CONTAINER, TENANT
from sluice_core.messages.uploads import Upload
from sluice_core.metrics.totals import Totals
from sluice_metrics.api import WITH_OBJECTS, Metric
from sluice_metrics.builtin.compressibility import Compressibility
from sluice_metrics.builtin.requests import ActiveRequests, GetsSec, PutsSec
from sluice_metrics.meter.cell import MOST_COLUMNS
from sluice_metrics.meter.meter import Meter
from sluice_metrics.native import create_metric, load_metric, metric_info
from sluice_metrics.registry import BUILT_IN
from sluice_metrics.testing import FakeClock, MetricContract, upload, values, whole_request
from sluice_metrics.trial import run_trial

HEAD = "from sluice_core.describe import MetricInfo\nfrom sluice_metrics.api import Metric\n"
DELETES = f"""{HEAD}
class Deletes(Metric):
    info = MetricInfo("DELETES_SEC", "per_second", "DELETEs per second")

    def admitted(self, method):
        return 1 if method == "DELETE" else 0
""".encode()


def mine(body="    pass", words="", more=""):
    info = f"MetricInfo('MINE', 'count', 'help'{words})"
    return f"{HEAD}import random\nclass Mine(Metric):\n    info = {info}\n{more}\n{body}\n".encode()


def mean(body, more="", words=""):
    return mine(f"    def responded(self, response): {body}", words, f"    mean = True\n{more}")


def digest(code):
    return hashlib.sha256(code).hexdigest()


def verdict(code, keyword="", main=""):
    return run_trial(Trial("metric", "/nowhere", digest(code), keyword, main), code)


def registered(code=DELETES, **more):
    given = {"info": verdict(code).info, "kind": "metric", **more}
    return Upload("DELETES_SEC", "native", "python", "Deletes", digest(code), len(code), **given)


@pytest.mark.parametrize("one", BUILT_IN, ids=lambda one: one.info.name)
def test_every_metric_of_ours_would_pass_as_an_upload(one):
    code = f"from dataclasses import replace\nfrom {one.__module__} import {one.__name__} as Base\n"
    code += "class Mine(Base):\n    info = replace(Base.info, name='MINE')\n"
    found = verdict(code.encode(), "MINE")
    assert (found.reason, found.main) == ("", "Mine")
    for kind in ("gauge", "sample_size", "mean", "quantile"):
        assert found.info[kind] == getattr(one, kind)
    info = metric_info(Upload("MINE", "native", "python", "Mine", "", 0, info=found.info, kind="metric"))
    assert (info.unit, info.granularities, info.help) == (one.info.unit, one.info.granularities, one.info.help)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"class", "SyntaxError"),
        (b"x = 1", "the code has no subclass of Metric"),
        (HEAD.encode() + b"class A(Metric): pass", "class `A` has no `info` that is a MetricInfo"),
        (mine(words=", period=5.0"), "period `5.0`, expected 1"),
        (mine(words=", granularities=()"), "granularities"),
        (mine(words=", granularities=('moon',)"), "granularities"),
        (mine(words=", granularities=3"), "what it says of itself: TypeError"),
        (mine().replace(b"'count'", b"'hats'"), "unit `hats`"),
        (mine().replace(b"'MINE'", b"'Mine'"), "name `Mine`"),
        (mine(more="    gauge = 3"), "gauge `3`"),
        (mine(more="    sample_size = 'all'"), "sample_size `all`"),
        (mine(words=", granularities=('object',)", more="    gauge = True"), "only totals"),
        (mine(more="    sample_size = 9"), "means over samples are not added up"),
        (mine(more="    mean = True"), "the method `responded` needs `mean` or a `quantile`"),
        (mine("    def responded(self, response): return 1, 1"), "the method `responded` needs `mean` or a `quantile`"),
        (mean("return 1, 1", "    gauge = True"), "it has `gauge` and `mean`, expected one"),
        (mine(more="    quantile = 0.9"), "the method `responded` needs `mean` or a `quantile`"),
        (mine(more="    quantile = 95"), "quantile `95`, expected a number below 1"),
        (
            mine("    def responded(self, response): return 0, 1", more="    quantile = 0.9"),
            "unit `count`, expected seconds",
        ),
        (mean("return 1, 1", words=", granularities=('object',)"), "only totals"),
        (mean("return 1, -1"), "is `(1, -1)`, expected amount and weight, neither below zero"),
        (mean("return 1, 0"), "is `(1, 0)`, expected amount and weight, neither below zero"),
        (mean("return 1"), "fails: TypeError"),
        (mean("return random.random(), 1"), "gives another answer for the same response"),
        (mine("    def __init__(self): 1/0"), "it cannot be made: ZeroDivisionError"),
        (mine("    def admitted(self, method): 1/0"), "admitted(`GET`) fails: ZeroDivisionError"),
        (mine("    def sent(self, method): return 1"), "sent(`GET`, 0) fails: TypeError"),
        (mine("    def ended(self, method): return 'x'"), "ended(`GET`) is `'x'`, expected a finite number"),
        (mine("    def ended(self, method): return float('nan')"), "expected a finite number"),
        (mine("    def ended(self, method): return random.random()"), "expected what depends on the arguments only"),
        (mine("    def ended(self, method): return -1"), "expected a total that never shrinks"),
        (mine("    def admitted(self, method): return 1", more="    gauge = True"), "takes the level up by `1`"),
        (
            mine("    def sampled(self, data): return 1, 0", ", granularities=('tenant',)", "    sample_size = 9"),
            "expected an amount and a weight above zero",
        ),
    ],
)
def test_what_breaks_the_contract_is_refused_with_the_reason(code, reason):
    with pytest.raises(BadUpload) as refused:
        verdict(code)
    assert reason in str(refused.value)


def test_code_that_calls_itself_otherwise_is_refused():
    with pytest.raises(BadUpload, match="calls itself `DELETES_SEC`, expected `POSTS_SEC`"):
        verdict(DELETES, "POSTS_SEC")


def test_a_child_tries_the_same(tmp_path):
    CodeStore(tmp_path).add(DELETES, digest(DELETES))
    found = try_code(Trial("metric", str(tmp_path), digest(DELETES), "DELETES_SEC"))
    assert (found.reason, found.main, found.info) == ("", "Deletes", verdict(DELETES).info)


def test_the_class_of_an_upload_keeps_the_contract():
    class Suite(MetricContract):
        metric = load_metric(registered(), DELETES)

    for name in (one for one in dir(Suite) if one.startswith("test_")):
        getattr(Suite(), name)()
    assert isinstance(create_metric(registered(), DELETES), Metric)


def test_what_is_not_as_registered_is_not_loaded():
    other = Upload("POSTS_SEC", "native", "python", "Deletes", digest(DELETES), 1, kind="metric")
    with pytest.raises(BadUpload, match="expected `POSTS_SEC`"):
        load_metric(other, DELETES)
    with pytest.raises(BadUpload, match="description of metric `DELETES_SEC`"):
        metric_info(registered(info={"granularities": 7}))


# -- a meter whose metrics change


class Deletes(Metric):
    info = MetricInfo("DELETES_SEC", "per_second", "DELETEs", WITH_OBJECTS)

    def admitted(self, method):
        return 1 if method == "DELETE" else 0


class Level(Metric):
    info = MetricInfo("LEVEL", "count", "requests at work")
    gauge = True

    def admitted(self, method):
        return 1

    def ended(self, method):
        return -1


class Failing(Metric):
    info = MetricInfo("FAILING", "count", "raises")

    def admitted(self, method):
        raise ZeroDivisionError


class Mean(Compressibility):
    info = MetricInfo("MEAN", "ratio", "a mean", granularities=(TENANT, CONTAINER))


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def meter(clock):
    return Meter([PutsSec(), ActiveRequests()], clock, objects=2)


def now(meter, path="acme"):
    meter.reconnected()
    return values(meter, meter.changed()).get(path, {})


def also(meter, *metrics):
    meter.measure([*meter._metrics, *metrics])


def test_metrics_that_stay_go_on_from_what_they_counted(meter):
    whole_request(meter.begin("acme", "logs", "o"), "PUT")
    also(meter, Deletes())
    whole_request(meter.begin("acme", "logs", "o"), "PUT")
    whole_request(meter.begin("acme", "logs", "o"), "DELETE")
    assert meter.names == ("PUTS_SEC", "ACTIVE_REQUESTS", "DELETES_SEC")
    for path in ("acme", "acme/logs", "acme/logs/o"):
        found = now(meter, path)
        assert (found["PUTS_SEC"], found["DELETES_SEC"]) == (2, 1), path


def test_columns_that_move_take_their_values_along(meter):
    whole_request(meter.begin("acme", "logs"), "PUT", end=False)
    puts, active = meter._metrics
    meter.measure([Deletes(), active, puts])
    assert now(meter) == {"DELETES_SEC": 0, "ACTIVE_REQUESTS": 1, "PUTS_SEC": 1}
    meter.measure([puts])
    assert now(meter) == {"PUTS_SEC": 1}


def test_a_request_under_way_comes_down_in_its_own_level_and_not_in_one_that_is_new(meter):
    begun = meter.begin("acme", "logs")
    begun.admitted("GET")
    also(meter, Level())
    begun.ended("GET")
    found = now(meter)
    assert (found.get("ACTIVE_REQUESTS", 0), found.get("LEVEL", 0)) == (0, 0)
    whole_request(meter.begin("acme", "logs"), "GET", end=False)
    assert now(meter)["LEVEL"] == 1


def test_a_level_that_is_replaced_begins_at_zero_for_what_is_under_way(meter):
    also(meter, Level())
    begun = meter.begin("acme", "logs")
    begun.admitted("GET")
    meter.measure([*meter._metrics[:2], Level()])
    begun.ended("GET")
    assert now(meter).get("LEVEL", 0) == 0


def test_a_total_that_is_replaced_goes_on_from_what_it_counted(meter):
    also(meter, Deletes())
    whole_request(meter.begin("acme", "logs"), "DELETE")
    meter.measure([*meter._metrics[:2], Deletes()])
    whole_request(meter.begin("acme", "logs"), "DELETE")
    assert now(meter)["DELETES_SEC"] == 2


def test_what_was_switched_off_stays_so_until_it_is_replaced(meter):
    also(meter, Failing())
    whole_request(meter.begin("acme", "logs"), "PUT")
    also(meter, Deletes())
    whole_request(meter.begin("acme", "logs"), "PUT")
    assert meter.failures == {"FAILING.admitted": 1}
    meter.measure([*meter._metrics[:2], Failing()])
    whole_request(meter.begin("acme", "logs"), "PUT")
    assert meter.failures == {"FAILING.admitted": 2}


def test_a_sample_that_was_begun_before_counts_in_the_columns_of_now(clock):
    data = b"some words, again and again " * 3000
    compressibility = Compressibility()
    meter = Meter([compressibility], clock)
    handle = meter.begin("acme", "logs")
    handle.admitted("PUT")
    sample = handle.sample()
    meter.measure([Deletes(), Mean(), compressibility])
    sample.add(data)
    sample.end()
    found = now(meter)
    assert found["COMPRESSIBILITY"] == found["MEAN"] > 0
    assert found["COMPRESSIBILITY:weight"] == found["MEAN:weight"] > 0
    meter.measure([compressibility])
    assert now(meter) == {name: found[name] for name in ("COMPRESSIBILITY", "COMPRESSIBILITY:weight")}
    assert upload(meter.begin("acme", "other"), data)


def test_an_object_that_lost_its_place_takes_counts_of_any_column(meter):
    handle = meter.begin("acme", "logs", "rare")
    handle.admitted("PUT")
    for name in ("a", "b", "a", "b"):
        whole_request(meter.begin("acme", "logs", name), "PUT")
    also(meter, *(named(f"M{number}") for number in range(9)))
    meter.measure([*meter._metrics, PutBwOfObjects()])
    handle.received("PUT", 7)
    assert now(meter)["PUT_OBJECTS"] == 7


def named(name):
    return type(name, (Deletes,), {"info": MetricInfo(name, "count", "help", WITH_OBJECTS)})()


class PutBwOfObjects(Metric):
    info = MetricInfo("PUT_OBJECTS", "count", "bytes", WITH_OBJECTS)

    def received(self, method, size):
        return size


def test_objects_are_counted_from_the_first_metric_on_that_wants_them_to_the_last(clock):
    meter = Meter([ActiveRequests()], clock)
    assert meter.rows.objects is None
    gets = GetsSec()
    also(meter, gets)
    for _ in range(2):
        whole_request(meter.begin("acme", "logs", "o"), "GET")
    assert now(meter, "acme/logs/o")["GETS_SEC"] == 2
    meter.measure(meter._metrics[:1])
    assert meter.rows.objects is None
    assert now(meter, "acme/logs/o") == {}


def test_there_is_room_for_so_many_columns_only(meter):
    before = meter.names
    with pytest.raises(ValueError, match=f"expected at most {MOST_COLUMNS}"):
        also(meter, *(Deletes() for _ in range(MOST_COLUMNS)))
    assert meter.names == before


def test_an_agent_loses_nothing_of_what_others_count_when_metrics_come_and_go(meter, clock):
    totals = Totals(clock)
    clock.now += 1

    def told():
        totals.add_worker(Hello("w", "proxy", 1, {}, meter.names, meter.gauges))
        meter.reconnected()

    def window():
        rows = meter.changed()
        assert totals.update(Counters("w", 0.0, tuple(rows)))
        meter.delivered(rows)
        found = totals.close_window(1.0)
        return {name: one.get("tenant", {}).get("acme", 0) for name, one in found.items()}

    told()
    whole_request(meter.begin("acme", "logs"), "PUT")
    under_way = meter.begin("acme", "logs")
    under_way.admitted("PUT")
    assert window() == {"PUTS_SEC": 2, "ACTIVE_REQUESTS": 1}
    whole_request(meter.begin("acme", "logs"), "PUT")
    also(meter, Deletes(), Level())
    whole_request(meter.begin("acme", "logs"), "DELETE")
    told()
    assert window() == {"PUTS_SEC": 1, "ACTIVE_REQUESTS": 1, "DELETES_SEC": 1, "LEVEL": 0}
    under_way.ended("PUT")
    meter.measure([*meter._metrics[:2], Deletes()])
    whole_request(meter.begin("acme", "logs"), "DELETE")
    told()
    assert window() == {"PUTS_SEC": 0, "ACTIVE_REQUESTS": 0, "DELETES_SEC": 1}
