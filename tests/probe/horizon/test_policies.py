"""The panel of policies: searches in the list, help of the editor, a policy's page, actions by user.

The tests define the API's responses.
"""

import pytest
from tests.support.browser.browser import NARROW
from tests.support.browser.fake_api import error_body
from tests.support.browser.policy_answers import checked, condition, policy, problem

TYPO = "FOR TENANT acme WHEN PUT_SEC > 3 DO SET compression"
UNKNOWN = problem("unknown metric `PUT_SEC`, did you mean `PUTS_SEC`", 22, 29, near_miss="PUTS_SEC")
SCRIPT = '<img src=x onerror="document.title=666"><script>document.title=666</script>{$ 7*191 $}{{ 7*191 }}'
WORDS = {
    "start": 41,
    "end": 44,
    "candidates": [
        {"text": "compression", "kind": "action", "label": "compression", "help": "makes objects smaller"},
        {"text": "compaction", "kind": "action", "label": "compaction", "help": ""},
    ],
    "more": False,
}


@pytest.fixture
def panel(fake_dashboard):
    """The panel of administrators."""
    fake_dashboard.login("admin")
    return fake_dashboard


@pytest.fixture
def editor(panel):
    panel.open("/sluice/policies/create/")
    return panel


def field(dashboard):
    return dashboard.page.get_by_label("Policy", exact=True)


def problems(dashboard):
    """The errors of the text, below the field."""
    return dashboard.page.locator("#policy-problems")


def asked(fake_api, call):
    return [one for one in fake_api.requests if f"{one.method} {one.path}".startswith(call)]


def test_the_list_is_found_by_word_tenant_and_state_and_paged(panel, fake_api):
    rows = [policy(number) for number in range(50)]
    fake_api.say("GET /policies", {"policies": rows, "next_marker": "m&1", "previous_marker": "b1", "total": 10_000})
    panel.open("/sluice/policies/")
    page = panel.page
    page.get_by_label("With the word").fill("compression")
    page.get_by_label("of the tenant").fill("acme")
    page.get_by_label("in the state").select_option("failed")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("10000 policies are like this.").wait_for()
    path = asked(fake_api, "GET /policies?")[-1].path
    assert all(one in path for one in ("text=compression", "tenant=acme", "state=failed", "order=newest", "limit=50"))
    page.get_by_role("link", name="Older").click()
    page.wait_for_url("**/*marker=m%261*")
    assert "marker=m%261" in asked(fake_api, "GET /policies?")[-1].path
    assert "state=failed" in page.url
    assert panel.findings.faults == []


def test_an_error_is_underlined_while_one_types_and_mended_by_a_click(editor, fake_api):
    fake_api.say("POST /policies/check", error_body(400, "unknown metric", (UNKNOWN,)), 400)
    page = editor.page
    field(editor).fill(TYPO)
    mark = page.locator("[data-editor-marks] mark")
    mark.wait_for()
    assert mark.inner_text() == "PUT_SEC"
    assert field(editor).get_attribute("aria-invalid") == "true"
    assert "did you mean `PUTS_SEC`" in page.locator("#sluice-announcer").inner_text()
    editor.picture("policy-typo")
    assert editor.violations() == []
    fake_api.say("POST /policies/check", {"policies": [checked()]})
    page.get_by_role("button", name="Write PUTS_SEC").click()
    assert field(editor).input_value() == TYPO.replace("PUT_SEC", "PUTS_SEC")
    problems(editor).get_by_text("No errors.").wait_for()
    assert mark.count() == 0
    assert editor.findings.faults == []


def test_columns_count_characters_and_not_the_units_of_scripts(editor, fake_api):
    fake_api.say("POST /policies/check", error_body(400, "x", ({**UNKNOWN, "column": 24, "end_column": 31},)), 400)
    field(editor).fill(TYPO.replace("acme", "\N{GRINNING FACE}\N{GRINNING FACE}acme"))
    assert editor.page.locator("[data-editor-marks] mark").inner_text() == "PUT_SEC"


def test_what_a_sentence_means_and_whom_it_overrides_is_shown_before_it_is_saved(editor, fake_api):
    doubt = problem("this drops `encryption`", 1, 4, severity="warning")
    fake_api.say("POST /policies/check", {"policies": [checked(warnings=[doubt])]})
    field(editor).fill("FOR TENANT acme DO SET compression")
    meaning = editor.page.locator('[data-editor-part="meaning"]')
    meaning.get_by_text("PUTS_SEC above 3/s").wait_for()
    assert "FOR CONTAINER acme/c2 DO SET compression" in meaning.inner_text()
    assert "the policy about the narrower target wins" in meaning.inner_text()
    assert "this drops `encryption`" in problems(editor).inner_text()
    assert asked(fake_api, "POST /policies ") == []
    editor.picture("policy-meaning")
    assert editor.violations() == []


def test_words_are_completed_by_keyboard(editor, fake_api):
    fake_api.say("POST /policies/complete", WORDS)
    page = editor.page
    field(editor).focus()
    page.keyboard.type("FOR TENANT acme WHEN PUTS_SEC > 3 DO SET com")
    page.get_by_role("option", name="compression").wait_for()
    chosen = field(editor).get_attribute("aria-activedescendant")
    assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    editor.picture("policy-words")
    assert editor.violations() == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    page.get_by_role("listbox").wait_for(state="hidden")
    page.keyboard.press("Control+Space")
    page.get_by_role("option", name="compaction").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert field(editor).input_value() == "FOR TENANT acme WHEN PUTS_SEC > 3 DO SET compaction "
    assert page.evaluate("document.activeElement.id") == "id_policy"


def test_what_is_refused_is_said_beside_the_field_and_what_was_typed_is_kept(editor, fake_api):
    fake_api.say("POST /policies/check", error_body(400, "unknown metric", (UNKNOWN,)), 400)
    fake_api.say("POST /policies", error_body(400, "unknown metric", (UNKNOWN,)), 400)
    field(editor).fill(TYPO)
    editor.page.get_by_role("button", name="Save").click()
    editor.page.get_by_text("not saved: 1 error").wait_for()
    assert field(editor).input_value() == TYPO
    assert editor.page.locator("[data-editor-marks] mark").inner_text() == "PUT_SEC"


def test_an_api_that_is_away_keeps_what_was_typed(editor, fake_api):
    fake_api.away = True
    field(editor).fill(TYPO)
    problems(editor).get_by_text("redis does not answer").wait_for()
    editor.page.get_by_role("button", name="Save").click()
    editor.page.locator(".alert-danger", has_text="redis does not answer").wait_for()
    assert field(editor).input_value() == TYPO
    assert "Traceback" not in editor.page.content()


def test_a_login_that_has_ended_is_said_and_what_was_typed_is_kept(editor, fake_api):
    fake_api.say("POST /policies/check", error_body(401, "the token was revoked"), 401)
    field(editor).fill(TYPO)
    editor.page.locator("[data-sluice-login]").get_by_role("link").wait_for()
    assert field(editor).input_value() == TYPO


def test_a_policy_that_somebody_changed_meanwhile_is_not_overwritten(panel, fake_api):
    fake_api.say("PUT /policies/p1", error_body(412, "policy `p1` is at version 2, not at 1"), 412)
    panel.open("/sluice/policies/p1/edit/")
    field(panel).fill("FOR TENANT acme DO SET noop")
    panel.page.get_by_role("button", name="Save").click()
    panel.page.get_by_text("is at version 2, not at 1").wait_for()
    assert field(panel).input_value() == "FOR TENANT acme DO SET noop"


def test_a_policy_shows_values_beside_thresholds_its_firings_and_who_refuses_it(panel, fake_api):
    enforced = {"total": 3, "nodes": 1, "refused": [{"node": "node2", "reason": "no room"}], "waiting": [], "away": []}
    shown = fake_api.answers["GET /policies/p1"].body | {"enforced": enforced}
    fake_api.say("GET /policies/p1", shown)
    panel.open("/sluice/policies/p1/")
    page = panel.page
    assert "> 3 /s" in page.locator(".sluice-readings").inner_text()
    assert "5 /s" in page.locator(".sluice-readings").inner_text()
    assert "set" in page.locator(".sluice-firings").inner_text()
    assert "no room" in page.locator(".sluice-nodes").inner_text()
    assert "node1" in page.locator(".sluice-nodes").inner_text()
    page.locator(".sluice-plot canvas").wait_for()
    page.locator("[data-plot-marks]", has_text="set").wait_for()
    assert panel.violations() == []
    panel.picture("policy")
    page.set_viewport_size(NARROW)
    panel.picture("policy-narrow")
    assert panel.findings.faults == []


def test_a_plot_has_the_threshold_the_firings_and_the_highest_of_each_step(panel, fake_api):
    panel.open("/sluice/policies/p1/")
    plot = panel.page.request.get(f"{panel.url}/sluice/policies/p1/plots/0/?last=3600").json()
    assert [one["label"] for one in plot["series"]] == ["PUTS_SEC acme", "PUTS_SEC acme: highest"]
    assert plot["series"][1]["points"][0][1] == 9.0
    assert [one["value"] for one in plot["thresholds"]] == [3.0]
    assert [one["text"] for one in plot["marks"]] == ["set"]


def test_a_metric_without_a_history_leaves_the_marks_and_no_fault(panel, fake_api):
    fake_api.say("GET /metrics/PUTS_SEC/history", error_body(404, "no series"), 404)
    panel.open("/sluice/policies/p1/")
    panel.page.get_by_text("Nothing was measured in this time.").wait_for()
    assert panel.findings.faults == []


def test_undo_shows_its_plan_and_is_guarded_by_it(panel, fake_api):
    panel.open("/sluice/policies/p1/undo/")
    assert "It is deleted." in panel.page.locator(".sluice").inner_text()
    panel.page.get_by_role("button", name="Roll back").click()
    panel.page.wait_for_url(lambda url: url.endswith("/policies/?changed=p1"))
    plan, done = asked(fake_api, "POST /policies/p1/undo")
    assert (plan.path.endswith("plan=true"), done.path) == (True, "/policies/p1/undo")


def test_nobody_is_offered_what_would_be_refused(panel, fake_api):
    allowed = {"policies:list": True, "policies:list_all": True, "policies:show": True, "policies:create": False}
    fake_api.say("GET /permissions", {"permissions": allowed})
    panel.login("rita")
    panel.open("/sluice_project/policies/")
    assert panel.page.get_by_role("link", name="Write a policy").count() == 0
    panel.open("/sluice_project/policies/p1/")
    assert panel.page.locator(".sluice-actions").inner_text().strip() == ""


def test_text_of_tenants_is_shown_as_text(panel, fake_api):
    bad = condition(SCRIPT)
    fired = [{"at": "2026-01-01T00:00:00+00:00", "what": "set", "member": SCRIPT, "window": 1}]
    shown = policy(1, source=SCRIPT, created_by=SCRIPT, reason=SCRIPT, firings=fired, conditions=[bad])
    meant = checked(explanation=[{"about": "target", "text": SCRIPT}], policy=SCRIPT)
    words = [{"text": SCRIPT, "kind": "tenant", "label": SCRIPT, "help": SCRIPT}]
    fake_api.say("GET /policies", {"policies": [shown], "next_marker": None, "previous_marker": None, "total": 1})
    fake_api.say("GET /policies/p1", shown)
    fake_api.say("GET /policies/p2", {**shown, "id": "p2"})
    fake_api.say("POST /policies/check", {"policies": [meant]})
    fake_api.say("POST /policies/complete", {"start": 0, "end": 1, "candidates": words, "more": False})
    for path in ("", "p1/", "p1/edit/", "p1/delete/"):
        panel.open(f"/sluice/policies/{path}")
        panel.page.wait_for_load_state("networkidle")
        seen = panel.page.locator(".sluice").inner_text() + " ".join(panel.page.locator("textarea").all_inner_texts())
        assert "<script>document.title=666</script>" in seen
        assert "1337" not in seen
    panel.open("/sluice/policies/create/")
    field(panel).press_sequentially("F")
    panel.page.get_by_role("option").wait_for()
    panel.page.locator('[data-editor-part="meaning"] pre').wait_for()
    assert "666" not in panel.page.title()
    assert panel.findings.faults == []


def test_what_is_not_known_is_not_found(panel):
    assert panel.open("/sluice/policies/none/").status == 404
    assert panel.open("/sluice/policies/none/edit/").status == 404
