"""``/metrics/history`` of docs/admin/history.md: series from a real Redis, their readers, and refused requests."""

import struct
from dataclasses import replace

import pytest
from keystoneauth1.exceptions import NotFound
from tests.support.controller.checked_client import CheckedClient

from sluice_controller.identity.caller import IDENTITY, Identity
from sluice_controller.identity.projects import ListedProjects
from sluice_core.store.store import Store
from sluice_metric_history.operations import write_row, write_series
from sluice_metric_history.records import SeriesRecord
from sluice_metric_history.resolutions import RESOLUTIONS, invert

SECONDS, TENS, MINUTES = RESOLUTIONS
NOW = 1_200_000_000
RITA = Identity.from_user("u-rita", "rita", "acme-id", "acme", ("reader",))
ULF = Identity.from_user("u-ulf", "ulf", "umbrella-id", "umbrella", ("member", "reader"))
NOBODY = Identity.from_user("u-nils", "nils", "acme-id", "acme", ())
ADA = replace(Identity.from_user("u-ada", "ada", "acme-id", "acme", ("admin", "reader")), is_admin=True)


class Kept:
    """Series in Redis at :data:`NOW`."""

    def __init__(self, backend):
        self.backend = backend
        object.__setattr__(backend, "now", lambda: NOW + 0.5)

    def series(self, metric, level, path, step=1, rest=False, of=0):
        name = f"s{len(self.backend.store.client.keys('*:metric_points:60:*'))}"
        record = SeriesRecord(name, metric, level, path, step, NOW - 3600, rest, of)
        self.backend.history.run(write_series(self.backend.history.keys, [record]))
        return record

    def seconds(self, record, first, *values):
        for second, value in enumerate(values, NOW + first):
            if value is not None:
                self._row(SECONDS, second, record, struct.pack("<f", value))

    def summary(self, resolution, record, at, low, high):
        self._row(resolution, at, record, struct.pack("<ffHH", low, high, 0x8000, 0xFFFF))

    def _row(self, resolution, at, record, raw):
        store = self.backend.history
        store.run(write_row(store.keys, resolution, at, {record.id: invert(raw)}))


@pytest.fixture
def kept(backend):
    return Kept(backend)


@pytest.fixture
def people(kept, config):
    """A function that returns the client of a user of Keystone."""
    from django.test import override_settings

    from sluice_controller.catalog.backend import current_backend

    with override_settings(SLUICE=replace(config, auth="keystone")):
        object.__setattr__(current_backend(), "now", kept.backend.now)
        object.__setattr__(current_backend(), "projects", None)  # without a Keystone
        yield lambda identity: CheckedClient(**{IDENTITY: identity})


def points(api, query):
    answer = api.get(f"/metrics/{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()["points"]


def test_points_are_what_was_measured_and_gaps_are_null(api, kept):
    kept.seconds(kept.series("PUTS_SEC", "tenant", "AUTH_a"), -4, 1.5, None, 0.0)
    found = api.get("/metrics/puts_sec/history?target=AUTH_a&from=-4&step=1").json()
    assert found == {
        "metric": "PUTS_SEC",
        "unit": "per_second",
        "level": "tenant",
        "target": "AUTH_a",
        "rest": False,
        "of": 0,
        "step": 1,
        "from": "2008-01-10T21:19:56.000Z",
        "to": "2008-01-10T21:20:00.000Z",
        "points": [
            [NOW - 4, 1.5, 1.5, 1.5, None],
            [NOW - 3, None, None, None, None],
            [NOW - 2, 0.0, 0.0, 0.0, None],
            [NOW - 1, None, None, None, None],
        ],
    }


def test_minutes_have_their_ends_and_a_percentile_and_ten_of_them_none(api, kept):
    record = kept.series("PUTS_SEC", "cluster", "")
    for minute in range(1, 11):
        kept.summary(MINUTES, record, NOW - 60 * minute, minute, minute + 2)
    first = points(api, "PUTS_SEC/history?from=-600&step=60")[0]
    assert first[2:] == [10.0, 12.0, 12.0]
    assert first[1] == pytest.approx(11.0, rel=1e-4)
    ((_, mean, low, high, p95),) = points(api, "PUTS_SEC/history?from=-600&step=600")
    assert (low, high, p95) == (1.0, 12.0, None)
    assert mean == pytest.approx(6.5, rel=1e-4)


def test_what_is_kept_in_minutes_alone_is_answered_in_minutes(api, kept):
    record = kept.series("STORED", "container", "AUTH_a/c", step=60)
    kept.summary(MINUTES, record, NOW - 60, 7, 7)
    answer = api.get("/metrics/STORED/history?target=AUTH_a/c&from=-120&step=10").json()
    assert answer["step"] == 60
    assert [one[1] for one in answer["points"]] == [None, 7.0]


def test_a_target_is_what_the_metric_is_of(api, kept):
    for metric, level, path in (
        ("VOLUME_READ_BW", "volume", "AUTH_a/v1"),
        ("NODE_CPU", "node", "n1"),
        ("GET_BW_SHARE", "container", "AUTH_a/c"),
        ("NODE_GET_BW_CAPACITY", "node", "n1/proxy"),
        ("DEVICE_PUT_BW_MEASURED", "device", "n1/d1"),
        ("STORAGE_POLICY_FREE", "storage_policy", "gold"),
        ("POOL_FREE", "pool", "h@lvm#fast"),
    ):
        kept.seconds(kept.series(metric, level, path), -1, 3.0)
        answer = api.get(f"/metrics/{metric}/history", {"target": path, "from": "-1"}).json()
        assert (answer["level"], answer["points"]) == (level, [[NOW - 1, 3.0, 3.0, 3.0, None]])


def test_the_rest_is_a_sum_and_says_of_how_many(api, kept):
    kept.seconds(kept.series("PUTS_SEC", "tenant", "", rest=True, of=12), -1, 40.0)
    found = api.get("/metrics/PUTS_SEC/history?rest=tenant&from=-1").json()
    assert (found["rest"], found["of"], found["points"][0][1]) == (True, 12, 40.0)


def test_rows_for_spreadsheets(api, kept):
    kept.seconds(kept.series("PUTS_SEC", "tenant", "AUTH_a"), -2, None, 2.5)
    answer = api.get("/metrics/PUTS_SEC/history?target=AUTH_a&from=-2", headers={"Accept": "text/csv"})
    assert answer["Content-Type"].startswith("text/csv")
    rows = answer.content.decode().splitlines()
    assert rows == ["time,mean,min,max,p95", f"{NOW - 2},,,,", f"{NOW - 1},2.5,2.5,2.5,"]


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("PUTS_SEX/history", 404, "no metric `PUTS_SEX`, did you mean `PUTS_SEC`"),
        ("PUTS_SEC/history?target=AUTH_x", 404, "no history of `PUTS_SEC` of `AUTH_x` is kept: only the busiest"),
        ("PUTS_SEC/history", 404, "no history of `PUTS_SEC` of the cluster is kept: it was not measured lately"),
        ("PUTS_SEC/history?target=AUTH_x/c/o", 400, "`target` is `AUTH_x/c/o`, but `PUTS_SEC` is measured per"),
        ("NODE_CPU/history?rest=tenant", 400, "`rest` is `tenant`, expected"),
        ("PUTS_SEC/history?rest=tenant&target=AUTH_a", 400, "beside `rest`"),
        ("PUTS_SEC/history?rest=node", 400, "`rest` is `node`, expected tenant, container, volume"),
        ("PUTS_SEC/history?step=x", 400, "`step` is `x`"),
        ("PUTS_SEC/history?since=1", 400, "unknown parameter `since`"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason(api, kept, query, status, text):
    answer = api.get(f"/metrics/{query}")
    assert answer.status_code == status, answer.content
    assert text in answer.json()["error"]["message"]


def test_a_reader_sees_the_history_of_its_project_and_no_other(people, kept):
    kept.seconds(kept.series("PUTS_SEC", "tenant", "AUTH_acme-id"), -1, 3.0)
    kept.series("PUTS_SEC", "cluster", "")
    kept.series("NODE_CPU", "node", "n1")
    kept.series("PUTS_SEC", "container", "", rest=True)
    own, others = "PUTS_SEC/history?target=AUTH_acme-id&from=-1", "PUTS_SEC/history?target=AUTH_nobody"
    assert points(people(RITA), own)[0][1] == 3.0
    refused = [
        people(ULF).get(f"/metrics/{own}"),
        people(ULF).get(f"/metrics/{others}"),
        people(NOBODY).get(f"/metrics/{own}"),
        people(RITA).get("/metrics/PUTS_SEC/history"),
        people(RITA).get("/metrics/NODE_CPU/history?target=n1"),
        people(RITA).get("/metrics/PUTS_SEC/history?rest=container"),
        people(RITA).delete("/metrics/history?target=AUTH_acme-id"),
    ]
    assert [one.status_code for one in refused] == [403] * len(refused)
    # Nor does an answer tell whether the history of another project exists.
    assert len({one.json()["error"]["message"].partition("it takes")[0] for one in refused[:2]}) == 1


def test_series_are_listed_by_pages_and_everybody_sees_their_own(people, kept):
    kept.series("PUTS_SEC", "tenant", "AUTH_acme-id")
    kept.series("PUTS_SEC", "container", "AUTH_acme-id/c")
    kept.series("GETS_SEC", "tenant", "AUTH_umbrella-id")
    kept.series("GETS_SEC", "tenant", "", rest=True, of=2)

    def listed(who, query=""):
        page = people(who).get(f"/metrics/history{query}").json()
        return [(one["metric"], one["target"]) for one in page["series"]], page["next_marker"]

    own = [("PUTS_SEC", "AUTH_acme-id/c"), ("PUTS_SEC", "AUTH_acme-id")]
    assert listed(RITA) == (own, None)
    assert listed(ADA)[0] == [("GETS_SEC", ""), ("GETS_SEC", "AUTH_umbrella-id"), *own]
    first, marker = listed(RITA, "?limit=1")
    assert first == own[:1]
    assert listed(RITA, f"?limit=1&marker={marker}") == (own[1:], None)
    assert listed(ADA, "?prefix=PUTS_SEC tenant ")[0] == own[1:]
    assert listed(ADA, "?metric=gets_sec&target=AUTH_umbrella-id")[0] == [("GETS_SEC", "AUTH_umbrella-id")]


def test_what_is_forgotten_is_gone_with_all_that_is_in_it(api, kept, backend):
    for path in ("AUTH_a", "AUTH_a/c", "AUTH_ab"):
        kept.series("PUTS_SEC", "container" if "/" in path else "tenant", path)
    kept.series("PART_GET_BW_MEASURED", "part", "n1/d1/AUTH_a")
    assert api.delete("/metrics/history?target=AUTH_a").json() == {"series": 3}
    assert [one["target"] for one in api.get("/metrics/history").json()["series"]] == ["AUTH_ab"]
    assert len(backend.store.client.keys("*:metric_points:1:*")) == 1
    assert api.delete("/metrics/history").status_code == 400


def test_only_history_is_away_with_the_redis_of_its_own(api, kept, backend):
    kept.seconds(kept.series("PUTS_SEC", "cluster", ""), -1, 3.0)
    object.__setattr__(backend, "history", Store("redis://127.0.0.1:1/0"))
    assert api.get("/metrics/PUTS_SEC/history").status_code == 503
    assert api.get("/policies").status_code == 200


class Projects:
    """The part of Keystone that returns projects: these, of which it lists some."""

    def __init__(self, *names, listed=None):
        self.names, self.listed, self.asked = names, names if listed is None else listed, []

    def get(self, url, **_):
        self.asked.append(url)
        if url != "/projects" and url.rpartition("/")[2] not in self.names:
            raise NotFound
        return self

    def json(self):
        return {"projects": [{"id": one, "name": f"project {one[0]}"} for one in self.listed]}


def follow_keystone(backend, keystone):
    object.__setattr__(backend, "projects", ListedProjects(lambda: keystone, "AUTH_"))


def test_the_series_of_a_deleted_project_are_forgotten(api, kept, backend):
    there, gone = "a" * 32, "b" * 32
    for name in (there, gone):
        kept.series("PUTS_SEC", "tenant", f"AUTH_{name}")
    kept.series("PUTS_SEC", "tenant", "AUTH_test")
    keystone = Projects(there)
    follow_keystone(backend, keystone)
    listed = [one["target"] for one in api.get("/metrics/history").json()["series"]]
    assert listed == [f"AUTH_{there}", "AUTH_test"]
    assert len(backend.store.client.keys("*:metric_points:1:*")) == 2
    assert api.get(f"/metrics/PUTS_SEC/history?target=AUTH_{gone}").status_code == 404
    assert api.get(f"/metrics/PUTS_SEC/history?target=AUTH_{there}").status_code == 200
    assert keystone.asked == ["/projects", f"/projects/{gone}"]


def test_series_say_what_their_project_is_called(api, kept, backend):
    known, twice = "a" * 32, ("b" + "1" * 31, "b" + "2" * 31)
    for path in (f"AUTH_{known}/books", f"AUTH_{twice[0]}/books", "AUTH_test/books"):
        kept.series("PUTS_SEC", "container", path)
    kept.series("NODE_CPU", "node", f"AUTH_{known}")
    follow_keystone(backend, Projects(known, *twice))
    labels = {(one["level"], one["target"][:6]): one["label"] for one in api.get("/metrics/history").json()["series"]}
    assert labels == {
        ("container", "AUTH_a"): "project a/books",
        ("container", "AUTH_b"): "",
        ("container", "AUTH_t"): "",
        ("node", "AUTH_a"): "",
    }


def test_a_list_of_projects_that_is_cut_short_deletes_nothing(api, kept, backend):
    kept.series("PUTS_SEC", "tenant", f"AUTH_{'b' * 32}")
    follow_keystone(backend, Projects("b" * 32, listed=()))
    assert len(api.get("/metrics/history").json()["series"]) == 1
