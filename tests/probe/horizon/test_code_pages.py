"""Pages of code when the API is unreachable, returns names of other users, or allows little."""

import pytest
from tests.support.browser.answers import OPERATIONS, node, say_nodes
from tests.support.browser.code_answers import say_code
from tests.support.browser.fake_api import error_body

SCRIPT = '<img src=x onerror="document.title=666"><script>document.title=666</script>{$ 7*191 $}{{ 7*191 }}'
#: The same without a slash, which no name of a filter has.
NAME = '<img src=x onerror="document.title=666">{$ 7*191 $}'
#: Page → the section of it that shows names of other users.
PAGES = {
    "": "list",
    "filters/shout/": "state",
    "metrics/": "list",
    "metrics/DELETES_SEC/": "state",
    "controllers/": "list",
    "controllers/spread/": "state",
    "dependencies/": "list",
    "dependencies/words.txt/": "state",
    "deployments/?target=acme": "list",
}
#: What buttons on them begin with.
BUTTONS = {"Upload", "Roll back", "Delete", "Stop", "Deploy to", "Undeploy", "Attach", "Detach"}


@pytest.fixture
def admin(fake_dashboard, fake_api):
    say_code(fake_api, SCRIPT, NAME)
    say_nodes(fake_api, node("node1", code={"shout": 2}), node("node2", code={"shout": 1}))
    fake_dashboard.login("admin")
    fake_dashboard.findings.clear()
    return fake_dashboard


@pytest.mark.parametrize("path", PAGES)
def test_what_others_have_named_is_shown_as_text(admin, path):
    assert admin.open(f"/sluice/code/{path}").status == 200
    shown = admin.page.locator(f"#section-{PAGES[path]}").inner_text()
    assert "<script>document.title=666</script>" in shown
    assert "1337" not in shown
    assert "666" not in admin.page.title()
    assert admin.findings.faults == []


def test_the_form_of_a_parameter_shows_what_the_code_says_as_text(admin):
    admin.open("/sluice/code/filters/shout/deploy/")
    assert "<script>document.title=666</script>" in admin.page.locator("form.sluice-form").inner_text()
    assert admin.findings.faults == []


def test_a_page_keeps_what_it_shows_while_the_api_is_away_and_forms_say_so(admin, fake_api):
    admin.open("/sluice/code/filters/shout/")
    fake_api.away = True
    admin.page.locator("[data-sluice-stale]").wait_for()
    assert "1 of 2 nodes have the newest revision, 1 refuses it" in admin.page.locator("#section-state").inner_text()
    for path in (*PAGES, "filters/shout/deploy/"):
        assert admin.open(f"/sluice/code/{path}").status == 503
        assert "redis does not answer" in admin.page.locator(".sluice").inner_text()


def offered(dashboard):
    """The buttons of the pages, by their beginnings."""
    found = set()
    for path in PAGES:
        dashboard.open(f"/sluice/code/{path}")
        texts = dashboard.page.locator(".sluice a.btn").all_inner_texts()
        found |= {begin for begin in BUTTONS if any(text.startswith(begin) for text in texts)}
    return found


def test_nobody_is_shown_a_button_that_the_rules_forbid(admin, fake_api):
    assert offered(admin) == BUTTONS
    reading = {name: name.partition(":")[2] in ("list", "show", "instances") for name in OPERATIONS}
    fake_api.say("GET /permissions", {"permissions": {**reading, "filters:upload": True, "filters:native": False}})
    admin.login("ada")  # the permissions of the last token are cached
    assert offered(admin) == {"Upload"}


def test_a_name_that_is_not_there_is_404(admin, fake_api):
    fake_api.say("GET /filters/gone", error_body(404, "there is no registered filter `gone`"), 404)
    assert admin.open("/sluice/code/filters/gone/").status == 404
    assert "there is no registered filter" in admin.page.locator(".sluice").inner_text()
