"""Panels are shown to the users that the API names, whatever roles Horizon knows."""

import pytest
from tests.support.browser.answers import OPERATIONS

ADMINISTRATORS = "Software-defined storage"


def allow(api, *operations):
    api.say("GET /permissions", {"permissions": {name: name in operations for name in OPERATIONS}})


def menu(dashboard):
    return dashboard.page.locator("#sidebar-accordion").inner_text()


@pytest.mark.parametrize(("allowed", "status"), [(["nodes:list"], 200), (["policies:list"], 403)])
def test_a_panel_is_shown_to_whom_the_api_allows_what_it_is_for(fake_dashboard, fake_api, allowed, status):
    allow(fake_api, *allowed)
    fake_dashboard.login("alice")
    assert fake_dashboard.open("/sluice/").status == status
    fake_dashboard.open("/identity/")
    assert (ADMINISTRATORS in menu(fake_dashboard)) == (status == 200)


def test_an_administrator_of_keystone_is_refused_what_the_api_refuses(fake_dashboard, fake_api):
    allow(fake_api)
    fake_dashboard.login("admin")
    assert fake_dashboard.open("/sluice/").status == 403


def test_while_the_api_is_away_administrators_have_their_panels_and_others_their_own(fake_dashboard, fake_api):
    fake_api.away = True
    fake_dashboard.login("alice")
    assert fake_dashboard.open("/sluice/").status == 403
    assert fake_dashboard.open("/sluice_project/").status == 503
    fake_dashboard.login("admin")
    assert fake_dashboard.open("/sluice/").status == 503


def test_the_menu_of_every_page_does_not_ask_the_api_anew(fake_dashboard, fake_api):
    fake_dashboard.login("admin")
    for path in ("/sluice/", "/identity/", "/sluice_project/"):
        fake_dashboard.open(path)
    assert len([one for one in fake_api.requests if one.path.startswith("/permissions")]) == 1
