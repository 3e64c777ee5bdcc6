"""The adapter to Cinder against a real one."""

import pytest
from tests.support.block.cinder import login

from sluice_aio.keystone import seed
from sluice_core.errors import Forbidden, PeerError
from sluice_volumes.cinder.service import CinderService, CinderSettings
from sluice_volumes.testing.cinder_contract import CinderContract


@pytest.fixture(scope="module")
def layout(volumes_cluster):
    return volumes_cluster.layout


@pytest.fixture(scope="module")
def service(layout):
    return CinderService(settings(layout))


def settings(layout, **changes):
    password = seed.password(layout, "sluice")
    return CinderSettings(**{"auth_url": layout.keystone_url, "user": "sluice", "project": "service",
                             "password": password} | changes)  # fmt: skip


def view_of(service, layout, user):
    session = login(layout, user).client.session
    return service.as_caller(session.get_token(), session.get_project_id())


class TestCinderAdapter(CinderContract):
    @pytest.fixture
    def service(self, service):
        return service

    @pytest.fixture
    def caller(self, service, layout):
        return view_of(service, layout, "alice")

    @pytest.fixture
    def stranger(self, service, layout):
        return view_of(service, layout, "ulf")


def test_a_token_that_is_not_valid_is_the_callers_fault(service):
    with pytest.raises(Forbidden):
        service.as_caller("nonsense", "0" * 32).volumes()


def test_a_wrong_password_of_ours_is_not_the_callers_fault(layout):
    with pytest.raises(PeerError, match="service user") as caught:
        CinderService(settings(layout, password="wrong-one")).pools()
    assert "wrong-one" not in str(caught.value)


def test_a_cinder_is_found_where_an_option_says(layout):
    found = CinderService(settings(layout, url=f"{layout.url('cinder')}/v3"))
    assert found.pools()
    assert view_of(found, layout, "alice").volumes() == []


def test_a_cinder_that_is_not_there_is_a_peer_that_is_away(layout):
    with pytest.raises(PeerError, match="cannot be asked"):
        CinderService(settings(layout, url="http://127.0.0.1:9/v3")).pools()
