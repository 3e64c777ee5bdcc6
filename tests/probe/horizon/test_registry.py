"""The panel *Registry*: groups and their members, terms, aliases, stereotypes and their applications.

The tests define the API's responses, except in the journeys at the end, on a live cluster.
"""

import json

import pytest
from tests.support.browser.fake_api import error_body

TABS = ["Groups of tenants", "Groups of containers", "Groups of volumes", "Terms", "Aliases", "Stereotypes"]


@pytest.fixture
def panel(fake_dashboard):
    """The panel of administrators."""
    fake_dashboard.login("admin")
    return fake_dashboard


def asked(fake_api, call):
    return [one for one in fake_api.requests if f"{one.method} {one.path}".startswith(call)]


def tabs(dashboard):
    return dashboard.page.locator(".sluice-tabs a").all_inner_texts()


def allow(fake_api, **operations):
    known = {name.replace("__", ":"): value for name, value in operations.items()}
    fake_api.say("GET /permissions", {"permissions": known})


def test_every_kind_has_a_tab_and_what_came_with_the_software_has_no_buttons(panel, fake_api):
    panel.open("/sluice/registry/")
    assert tabs(panel) == TABS
    assert "acme, AUTH_y" in panel.page.locator(".sluice-registry").inner_text()
    panel.picture("registry")
    panel.page.get_by_role("link", name="Terms").click()
    builtin = panel.page.locator("#entry-DOCS")
    builtin.wait_for()
    assert "built in" in builtin.inner_text()
    assert builtin.locator("a").count() == 0
    panel.picture("registry-terms")
    assert panel.findings.faults == []


def test_a_group_is_made_and_the_member_that_is_refused_is_named_at_its_field(panel, fake_api):
    fake_api.say("POST /registry/gtenants", error_body(400, "member `acne`: no project `acne`"), 400)
    panel.open("/sluice/registry/")
    page = panel.page
    page.get_by_role("link", name="New group of tenants").click()
    page.get_by_label("Name").fill("gold")
    page.get_by_label("Tenants").fill("acme\nacne")
    page.get_by_role("button", name="Save").click()
    page.locator("#id_tenants_error", has_text="no project").wait_for()
    assert page.get_by_label("Tenants").input_value() == "acme\nacne"
    panel.picture("registry-refused")
    assert panel.violations() == []
    fake_api.say("POST /registry/gtenants", {}, 201)
    page.get_by_label("Tenants").fill("acme\n\nbeta\n")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("“gold” is registered.").wait_for()
    body = json.loads(asked(fake_api, "POST /registry/gtenants")[-1].body)
    assert body == {"name": "gold", "tenants": ["acme", "beta"]}


def test_a_member_comes_and_another_one_goes(panel, fake_api):
    fake_api.say("DELETE /registry/gcontainers/gold/containers/AUTH_x%2Flogs", None, 204)
    panel.open("/sluice/registry/gcontainers/named/gold/")
    page = panel.page
    page.get_by_role("link", name="Add a member").click()
    page.get_by_label("Member").fill("acme/films")
    page.get_by_role("button", name="Add").click()
    page.get_by_text("“acme/films” is a member now.").wait_for()
    assert json.loads(asked(fake_api, "PUT /registry/gcontainers/gold")[0].body) == {"container": "acme/films"}
    page.get_by_role("link", name="Take out").click()
    page.get_by_role("button", name="Take out").click()
    page.get_by_text("“AUTH_x/logs” is no member any more.").wait_for()
    assert len(asked(fake_api, "DELETE /registry/gcontainers/gold/containers/")) == 1
    assert panel.findings.faults == []


def test_what_policies_use_is_deleted_only_by_whom_it_is_insisted(panel, fake_api):
    fake_api.say("DELETE /registry/terms/gold", error_body(409, "term `gold` is used by policy `p1`"), 409)
    panel.open("/sluice/registry/terms/named/gold/delete/")
    page = panel.page
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("is used by policy").wait_for()
    fake_api.say("DELETE /registry/terms/gold", None, 204)
    page.get_by_label("Also when policies use it").check()
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("“gold” is deleted.").wait_for()
    first, second = asked(fake_api, "DELETE /registry/terms/gold")
    assert ("force" in first.path, "force=true" in second.path) == (False, True)


def test_an_alias_keeps_its_name_and_what_it_is_of(panel, fake_api):
    panel.open("/sluice/registry/aliases/named/gold/edit/")
    page = panel.page
    assert (page.locator("#id_name").count(), page.locator("#id_of").count()) == (0, 0)
    assert page.get_by_label("Parameters").input_value() == "engine=zstd"
    page.get_by_label("Parameters").fill("engine=zstd\nlevel=3")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("“gold” is changed.").wait_for()
    body = json.loads(asked(fake_api, "PUT /registry/aliases/gold")[0].body)
    assert body == {"text": "compression", "level": "", "params": {"engine": "zstd", "level": "3"}}


def test_a_stereotype_is_applied_and_taken_back(panel, fake_api):
    fake_api.say("PUT /stereotypes/gold/tenants/acme%2Flogs", {"changed": True})
    fake_api.say("DELETE /stereotypes/gold/tenants/AUTH_x", None, 204)
    panel.open("/sluice/registry/stereotypes/named/gold/")
    page = panel.page
    panel.picture("registry-stereotype")
    assert panel.violations() == []
    page.get_by_role("link", name="Apply", exact=True).click()
    page.get_by_label("Tenant or container").fill("acme/logs")
    page.get_by_role("button", name="Apply", exact=True).click()
    page.get_by_text("“gold” is applied to acme/logs.").wait_for()
    page.get_by_role("link", name="Unapply").click()
    page.get_by_role("button", name="Unapply").click()
    page.get_by_text("The stereotype is unapplied.").wait_for()
    assert panel.findings.faults == []


def test_a_project_sees_words_and_stereotypes_but_no_groups(panel, fake_api):
    allow(fake_api, terms__list=True, aliases__list=True, stereotypes__list=True, stereotypes__show=True)
    panel.login("rita")
    panel.open("/sluice_project/registry/")
    assert tabs(panel) == ["Terms", "Aliases", "Stereotypes"]
    assert panel.page.locator(".sluice a.btn").count() == 0
    panel.page.get_by_role("link", name="Stereotypes").click()
    panel.page.get_by_role("link", name="gold").click()
    panel.page.get_by_text("acme").first.wait_for()
    assert len(asked(fake_api, "GET /stereotypes/gold/tenants/acme")) > 0
    assert panel.page.locator(".sluice a.btn").count() == 0


def test_an_agent_of_a_project_applies_its_stereotype_to_its_project(panel, fake_api):
    rules = {"stereotypes__apply": True, "stereotypes__take_back": True}
    allow(fake_api, terms__list=True, stereotypes__list=True, stereotypes__show=True, **rules)
    panel.login("alice")
    panel.open("/sluice_project/registry/stereotypes/named/gold/")
    panel.page.get_by_role("link", name="Apply", exact=True).click()
    assert panel.page.get_by_label("Tenant or container").input_value() == "acme"


def test_what_is_not_known_is_not_found(panel):
    assert panel.open("/sluice/registry/stereotypes/named/none/").status == 404
    assert panel.open("/sluice/registry/aliases/named/none/edit/").status == 404


def test_an_administrator_names_tenants_and_types_and_applies_sentences_to_a_project(dashboard):
    dashboard.login("ada")
    page = dashboard.page
    dashboard.open("/sluice/registry/")
    page.get_by_role("link", name="New group of tenants").click()
    page.get_by_label("Name").fill("research")
    page.get_by_label("Tenants").fill("acme")
    page.get_by_role("button", name="Save").click()
    page.locator("#entry-research", has_text="acme").wait_for()
    page.get_by_role("link", name="research").click()
    page.get_by_role("link", name="Add a member").click()
    page.get_by_label("Member").fill("umbrella")
    page.get_by_role("button", name="Add").click()
    page.locator(".sluice-members", has_text="umbrella").wait_for()
    page.get_by_role("link", name="Groups of tenants").click()
    page.get_by_role("link", name="Terms").click()
    page.get_by_role("link", name="New term").click()
    page.get_by_label("Term").fill("SHEETS")
    page.get_by_label("Types").fill("ods\ntext/csv")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Stereotypes").click()
    page.get_by_role("link", name="New stereotype").click()
    page.get_by_label("Name").fill("archive")
    page.get_by_label("Sentences").fill("FOR {target} WHEN OBJECT_TYPE = SHEETS DO SET compression")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="archive").click()
    page.get_by_role("link", name="Apply", exact=True).click()
    page.get_by_label("Tenant or container").fill("acme")
    page.get_by_role("button", name="Apply", exact=True).click()
    page.locator(".sluice-targets", has_text="acme").wait_for()
    dashboard.picture("registry-live-stereotype")
    (made,) = (one for one in dashboard.client("ada").policies() if one["origin"] == "stereotype/archive")
    assert made["target"]["label"] == "acme"
    dashboard.open("/sluice/registry/terms/named/SHEETS/delete/")
    page.get_by_role("button", name="Delete").click()
    page.locator("[role=alert]", has_text=made["id"]).wait_for()
    dashboard.picture("registry-used")
    dashboard.open("/sluice/registry/stereotypes/named/archive/")
    page.get_by_role("link", name="Unapply").click()
    page.get_by_role("button", name="Unapply").click()
    page.get_by_text("To nothing that you may see.").wait_for()
    for kind, name in (("stereotypes", "archive"), ("terms", "SHEETS"), ("gtenants", "research")):
        dashboard.open(f"/sluice/registry/{kind}/named/{name}/delete/")
        page.get_by_role("button", name="Delete").click()
        page.get_by_text(f"“{name}” is deleted.").wait_for()
