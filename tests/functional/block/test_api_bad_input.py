"""Invalid calls about volumes: refused, without a change in Cinder and Redis."""

from urllib.parse import quote

import pytest
from tests.support.block.cinder import login
from tests.support.controller import bad_input
from tests.support.controller.bad_input import MALFORMED, OTHER_KINDS, read_calls, refused
from tests.support.controller.described_calls import ABOUT_VOLUMES

from sluice_aio.keystone import seed

#: Keys that calls about volumes write; other processes change the rest of Redis.
KEPT = ("volumes", "volume_operations", "tiers", "pool_calibrations")
SIZES = (0, -1, 1.5, 10**18, 10**30, "1", True, None, [1])


@pytest.fixture(scope="module")
def described(volumes_api):
    return volumes_api.ask("GET", "/schema").json()


@pytest.fixture(scope="module")
def calls(described):
    found = [call for call in read_calls(described) if call.path.startswith(ABOUT_VOLUMES)]
    assert len(found) > 15
    return found


def done(api, method, path, body=None):
    """The operation, when it is done."""
    made = api.ask(method, f"{path}?wait=30", body)
    assert (made.status, made.json()["state"]) == (202, "done"), made.body
    return made.json()


@pytest.fixture(scope="module")
def known(volumes_api):
    """One object of each kind; part of a path → its name."""
    made = done(volumes_api, "POST", "/volumes", {"size": 1, "name": "bad data"})
    volume = made["volume"]
    snapshot = done(volumes_api, "POST", f"/volumes/{volume}/snapshots", {"name": "bad monday"})["data"]["snapshot"]
    assert volumes_api.ask("POST", "/volumes/tiers", {"name": "badtier", "iops": 1}).status == 201
    pool = volumes_api.ask("GET", "/volumes/pools").json()["pools"][0]["name"]
    return {"volume": volume, "snapshot": snapshot, "operation": made["id"], "tier": "badtier", "pool": pool}


@pytest.fixture(scope="module")
def at_home(known):
    return lambda call: call.at(**known)


@pytest.fixture
def unchanged(volumes_api, volumes_cluster, known):
    """No request of a test changes the state."""
    cinder = login(volumes_cluster.layout, seed.ADMIN)

    def everything():
        in_cinder = [
            sorted((one.id, one.status) for one in cinder.volumes.list(search_opts={"all_tenants": 1})),
            sorted((one.id, one.status) for one in cinder.volume_snapshots.list(search_opts={"all_tenants": 1})),
            sorted((one.id, str(one.extra_specs)) for one in cinder.volume_types.list()),
        ]
        return in_cinder, {name: volumes_api.redis.hgetall(f"sluice:{name}") for name in KEPT}

    before = everything()
    yield
    assert everything() == before


pytestmark = pytest.mark.usefixtures("unchanged", "unlogged")


def test_odd_names_of_volumes_lead_nowhere(volumes_api, calls):
    bad_input.check_odd_names(volumes_api, calls)


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_body_that_is_no_object_of_known_fields_is_refused(volumes_api, calls, at_home, fault):
    bad_input.check_malformed_body(volumes_api, calls, at_home, fault)


def test_a_field_of_another_type_is_refused(volumes_api, described, calls, at_home):
    assert bad_input.check_other_types(volumes_api, described, calls, at_home) > 50


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_body_of_another_kind_is_refused(volumes_api, calls, at_home, kind):
    bad_input.check_other_kind(volumes_api, calls, at_home, kind)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(volumes_api, calls, at_home):
    bad_input.check_too_large(volumes_api, calls, at_home)


def test_a_body_of_unknown_length_is_refused(volumes_api, calls, at_home):
    bad_input.check_unknown_length(volumes_api, calls, at_home)


def test_parameters_that_are_none_are_refused(volumes_api, calls, at_home):
    assert bad_input.check_parameters(volumes_api, calls, at_home) > 50


def test_any_text_is_a_marker_or_a_name_or_is_refused(volumes_api, calls, at_home):
    bad_input.check_texts_in_query(volumes_api, calls, at_home)


def test_another_method_is_405_and_says_which_work(volumes_api, calls, at_home):
    bad_input.check_methods(volumes_api, calls, at_home)


def test_without_a_token_that_is_valid_nothing_is_done_or_told(volumes_api, calls, at_home):
    bad_input.check_tokens(volumes_api, calls, at_home)


def test_sizes_that_no_volume_has_are_refused(volumes_api, known):
    for size in SIZES:
        refused(volumes_api.ask("POST", "/volumes", {"size": size}), size, 400)
        refused(volumes_api.ask("PUT", f"/volumes/{known['volume']}/size", {"size": size}), size, 400)


def test_a_project_that_reads_as_python_is_a_text(volumes_api, known):
    for project in ("9" * 40, "1e999", "['a', {}]", "{}", "None"):
        found = volumes_api.ask("GET", f"/volumes?project={quote(project)}")
        assert (found.status, found.json()["volumes"]) == (200, []), found.body
    own = volumes_api.ask("GET", f"/volumes/{known['volume']}").json()["project"]
    found = volumes_api.ask("GET", f"/volumes?project={own}").json()["volumes"]
    assert [one["id"] for one in found] == [known["volume"]]
