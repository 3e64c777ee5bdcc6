"""Two concurrent changes of one object: one wins, the other gets 409 or 412, and they are never mixed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sluice_aio.base.setup import EC21, GOLD

pytestmark = pytest.mark.usefixtures("unlogged")

ROUNDS = 8
STORAGE = (GOLD, EC21)
#: Kind → where it is created, the body that creates the one called NAME, and its path.
MADE = {
    "a filter": ("/filters", {"keyword": "NAME", "environment": "wasm", "language": "wasm"}),
    "a dependency": ("/filters/dependencies", {"name": "NAME"}),
    "a group of tenants": ("/registry/gtenants", {"name": "NAME", "tenants": ["AUTH_two"]}),
    "a group of containers": ("/registry/gcontainers", {"name": "NAME", "containers": ["AUTH_two/c"]}),
    "a term": ("/registry/terms", {"term": "NAME", "patterns": ["pdf"]}),
    "an alias": ("/registry/aliases", {"name": "NAME", "of": "target", "text": "AUTH_two/c"}),
    "a metric": ("/registry/metrics", {"name": "NAME", "granularities": ["tenant"]}),
    "a stereotype": ("/stereotypes", {"name": "NAME", "text": "FOR {target} DO SET noop"}),
}
#: Kind → two ways to change it.
CHANGES = {
    "a filter": ({"help": "one"}, {"help": "two"}),
    "a dependency": ({"help": "one"}, {"help": "two"}),
    "a group of tenants": ({"tenants": ["AUTH_one"]}, {"tenants": ["AUTH_other"]}),
    "a group of containers": ({"containers": ["AUTH_one/c"]}, {"containers": ["AUTH_other/c"]}),
    "a term": ({"patterns": ["one"]}, {"patterns": ["other"]}),
    "an alias": ({"text": "AUTH_one/c"}, {"text": "AUTH_other/c"}),
    "a metric": ({"help": "one"}, {"help": "two"}),
    "a stereotype": ({"help": "one"}, {"help": "two"}),
    "a policy": ({"enabled": False}, {"policy": "FOR TENANT AUTH_two DO SET compression WITH engine=lz4"}),
}


def at_once(lone_api, *asked):
    """The responses to several concurrent calls, each on a connection of its own."""
    barrier = threading.Barrier(len(asked))

    def ask(one):
        own = replace(lone_api, _line=[])
        try:
            own.ask("GET", "/health")
            barrier.wait()
            return own.ask(*one[:3], **one[3])
        finally:
            own.hang_up()

    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(ask, asked))


def named(body, name):
    return {field: name if value == "NAME" else value for field, value in body.items()}


def make(lone_api, sort, number):
    """Path and version of a new object."""
    if sort == "a policy":
        path, body = "/policies", {"policy": f"FOR TENANT AUTH_two{number} DO SET compression"}
    else:
        path, body = MADE[sort][0], named(MADE[sort][1], name_of(sort, number))
    made = lone_api.ask("POST", path, body)
    assert made.status == 201, made.body
    shown = lone_api.ask("GET", made.headers["location"])
    return made.headers["location"], shown.headers["etag"]


def name_of(sort, number):
    word = f"two{sort.replace(' ', '')}{number}"
    return word.upper() if sort in ("a term", "a metric") else word


def forget(lone_api, path):
    forced = "" if path.startswith(("/policies", "/placements")) else "?force=true"
    gone = lone_api.ask("DELETE", path + forced)
    assert gone.status == 204, gone.body


def one_wins(answers):
    statuses = sorted(one.status for one in answers)
    assert statuses[0] in (200, 201, 204), [one.body for one in answers]
    assert all(status in (404, 409, 412) for status in statuses[1:]), [(one.status, one.body) for one in answers]
    return next(one for one in answers if one.status < 300)


@pytest.mark.parametrize("sort", MADE)
def test_of_two_that_make_the_same_one_does(lone_api, sort):
    path, body = MADE[sort]
    for number in range(ROUNDS):
        once = ("POST", path, named(body, name_of(sort, f"made{number}")), {})
        winner = one_wins(at_once(lone_api, once, once))
        forget(lone_api, winner.headers["location"])


def test_of_two_policies_that_contradict_each_other_one_is_made(lone_api):
    for number in range(ROUNDS):
        text = f"FOR TENANT AUTH_contra{number} DO SET compression WITH engine="
        asked = [("POST", "/policies", {"policy": text + engine}, {}) for engine in ("zstd", "lz4")]
        winner = one_wins(at_once(lone_api, *asked))
        forget(lone_api, winner.headers["location"])


@pytest.mark.parametrize("sort", CHANGES)
def test_of_two_that_change_the_same_version_one_does(lone_api, sort):
    for number in range(ROUNDS):
        path, version = make(lone_api, sort, f"put{number}")
        asked = [("PUT", path, body, {"If_Match": version}) for body in CHANGES[sort]]
        winner = one_wins(at_once(lone_api, *asked))
        shown = lone_api.ask("GET", path)
        assert shown.headers["etag"] == winner.headers["etag"] != version
        forget(lone_api, path)


@pytest.mark.parametrize("sort", CHANGES)
def test_what_is_changed_and_deleted_at_once_is_one_of_both(lone_api, sort):
    for number in range(ROUNDS):
        path, version = make(lone_api, sort, f"gone{number}")
        changed, gone = at_once(
            lone_api,
            ("PUT", path, CHANGES[sort][0], {"If_Match": version}),
            ("DELETE", path, None, {"If_Match": version}),
        )
        one_wins([changed, gone])
        there = lone_api.ask("GET", path).status
        assert there == (404 if gone.status == 204 else 200)
        if there == 200:
            forget(lone_api, path)


def test_without_a_version_both_may_win_but_are_never_mixed(lone_api):
    """Adding members needs no version: each member with a successful response is in the group."""
    path, _ = make(lone_api, "a group of tenants", "many")
    names = [f"AUTH_m{number}" for number in range(8)]
    answers = at_once(lone_api, *(("PUT", f"{path}/tenants/{name}", None, {}) for name in names))
    assert {one.status for one in answers} <= {200, 409}, [one.body for one in answers]
    members = {one["path"] for one in lone_api.ask("GET", f"{path}/tenants").json()["members"]}
    assert {name for name, one in zip(names, answers, strict=True) if one.status == 200} == members & set(names)
    forget(lone_api, path)


def test_of_two_that_place_a_tenants_containers_one_does(lone_api):
    path = "/placements/AUTH_two"
    first = lone_api.ask("PUT", path, {"storage_policy": STORAGE[0]})
    assert first.status in (200, 201), first.body
    for number in range(ROUNDS):
        version = lone_api.ask("GET", path).headers["etag"]
        wanted = {"storage_policy": STORAGE[1 - number % 2]}
        asked = [(method, path, body, {"If_Match": version}) for method, body in (("PUT", wanted), ("DELETE", None))]
        winner = one_wins(at_once(lone_api, *asked))
        if winner.status == 204:
            assert lone_api.ask("PUT", path, wanted).status == 201
    forget(lone_api, path)
