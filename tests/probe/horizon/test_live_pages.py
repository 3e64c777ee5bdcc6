"""Sections that refresh by themselves: at the allowed rate, keeping typed text, and with a message on failure.

The tests define the API's responses.
"""

import itertools
import json
import re

import pytest
from tests.support.browser.answers import event, node, say_nodes
from tests.support.browser.fake_api import error_body

#: Milliseconds after which the overview has requested each of its sections.
ROUND = 7_000
SCRIPT = '<img src=x onerror="document.title=666"><script>document.title=666</script>{$ 7*191 $}{{ 7*191 }}'


@pytest.fixture
def overview(fake_dashboard):
    fake_dashboard.login("admin")
    return fake_dashboard


def state(dashboard):
    """The section with the cards."""
    return dashboard.page.locator("#section-state")


def banner(page, name):
    return page.locator(f"[data-sluice-{name}]")


def test_a_section_follows_what_the_api_says(overview, fake_api):
    say_nodes(fake_api, node("node1"), node("node2", state="away", detail="since noon"))
    state(overview).get_by_text("1 of 2 well").wait_for()
    state(overview).get_by_text("node2 does not report since noon").wait_for()
    assert "1 of 2 well" in overview.page.locator("#sluice-announcer").inner_text()
    assert overview.findings.faults == []


def test_an_api_that_is_away_leaves_the_last_picture_and_says_how_old_it_is(overview, fake_api):
    page = overview.page
    fake_api.away = True
    banner(page, "stale").wait_for()
    assert re.search(r"from \d+:\d\d:\d\d", banner(page, "stale").inner_text())
    assert "2 of 2 well" in state(overview).inner_text()
    fake_api.away = False
    banner(page, "stale").wait_for(state="hidden")


def test_a_page_that_begins_without_an_api_has_its_frame_and_fills_when_it_is_back(overview, fake_api):
    fake_api.away = True
    assert overview.open("/sluice/").status == 503
    assert "Sluice does not answer" in state(overview).inner_text()
    assert "redis does not answer" in state(overview).inner_text()
    fake_api.away = False
    state(overview).get_by_text("2 of 2 well").wait_for()


def test_a_refusal_is_shown_in_the_words_of_the_api(overview, fake_api):
    fake_api.say("GET /overview", error_body(403, "`sluice:nodes:list` is not allowed to `ada`"), 403)
    assert overview.open("/sluice/").status == 403
    assert "is not allowed to `ada`" in state(overview).inner_text()


def test_what_is_gone_is_no_reason_to_call_the_page_old(overview, fake_api):
    fake_api.say("GET /overview", error_body(404, "no such cluster"), 404)
    state(overview).get_by_text("no such cluster").wait_for()
    assert banner(overview.page, "stale").is_hidden()


def test_a_token_that_the_api_refuses_leads_to_the_login(overview, fake_api):
    fake_api.say("GET /overview", error_body(401, "the token was revoked"), 401)
    banner(overview.page, "login").wait_for()
    link = banner(overview.page, "login").get_by_role("link")
    assert link.get_attribute("href").endswith("?next=%2Fsluice%2F")
    asked = len(overview.findings.requests)
    overview.page.wait_for_timeout(ROUND)
    assert len(overview.findings.requests) == asked


def test_text_of_tenants_is_shown_as_text(overview, fake_api):
    say_nodes(fake_api, node("node1", state="failed", detail=SCRIPT))
    fake_api.say("GET /events", {"events": [event(1, text=SCRIPT)], "next_marker": None, "last": "1-0"})
    overview.open("/sluice/")
    overview.page.wait_for_timeout(ROUND)
    for section in ("state", "events"):
        shown = overview.page.locator(f"#section-{section}").inner_text()
        assert "<script>document.title=666</script>" in shown
        assert "1337" not in shown
    assert "666" not in overview.page.title()
    assert overview.findings.faults == []


def test_polling_does_not_extend_the_login_session(overview):
    before = session_of(overview)
    overview.findings.clear()
    overview.page.wait_for_timeout(ROUND)
    assert any("section=state" in one for one in overview.findings.requests)
    assert session_of(overview) == before
    overview.open("/sluice/")
    assert session_of(overview)["expires"] > before["expires"]


def test_no_token_is_in_the_log(overview, fake_api, horizon_alone):
    tokens = {one.token for one in fake_api.requests}
    log = (horizon_alone[0].logs / "horizon.log").read_text(encoding="utf-8")
    assert "Login successful" in log
    assert [token for token in tokens if token in log] == []


def session_of(dashboard):
    """The session's cookie, whose expiry Horizon moves when the session is extended."""
    (found,) = (one for one in dashboard.context.cookies() if one["name"] == "sessionid")
    return {name: found[name] for name in ("value", "expires")}


def test_a_hidden_page_asks_less(overview):
    page = overview.page
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true});document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.wait_for_timeout(1_000)
    overview.findings.clear()
    page.wait_for_timeout(ROUND)
    assert len(overview.findings.requests) <= 1


def test_what_one_types_in_a_section_stays(overview, fake_api):
    page = overview.page
    page.evaluate(
        "document.querySelector('#section-state').insertAdjacentHTML('beforeend',"
        " '<form id=mine><label>a<input id=word></label></form>')"
    )
    page.fill("#word", "half a sent")
    say_nodes(fake_api, node("node1"), node("node2"), node("node3"))
    state(overview).get_by_text("3 of 3 well").wait_for()
    assert page.input_value("#word") == "half a sent"
    assert page.evaluate("document.activeElement.id") == "word"


def test_no_two_requests_of_a_page_begin_within_a_second(overview):
    page = overview.page
    page.evaluate(
        "window.begun = []; const real = fetch; fetch = (...a) => {begun.push(Date.now()); return real(...a)}"
    )
    page.evaluate(
        "for (let n = 0; n < 5; n++) sluice.poll({element: document.body, url: '?section=state', seconds: 1,"
        " done: r => r.text()})"
    )
    page.wait_for_timeout(ROUND)
    begun = json.loads(page.evaluate("JSON.stringify(begun)"))
    assert len(begun) >= 4
    assert min(later - earlier for earlier, later in itertools.pairwise(begun)) >= 999
