"""Pages of volumes before an API whose responses the tests define: kept input, and progress."""

import pytest
from tests.support.browser.fake_api import error_body
from tests.support.browser.volume_answers import VOLUME, operation, volume


@pytest.fixture
def admin(fake_dashboard):
    fake_dashboard.login("admin")
    return fake_dashboard


def fill(page, **fields):
    for name, text in fields.items():
        page.fill(f"#id_{name}", text)


def test_what_was_typed_is_kept_when_the_api_goes_away(admin, fake_api):
    page = admin.page
    admin.open("/sluice/volumes/create/")
    fill(page, name="data2", size="3")
    page.select_option("#id_tier", "gold")
    fake_api.away = True
    page.locator(".sluice").get_by_role("button", name="Create volume").click()
    assert "redis does not answer" in page.locator(".alert-danger").inner_text()
    assert [page.input_value(f"#id_{name}") for name in ("name", "size", "tier")] == ["data2", "3", "gold"]


def test_a_refusal_stands_at_the_field_that_it_is_about(admin, fake_api):
    page = admin.page
    fake_api.say("GET /volumes/tiers/match", error_body(409, "no pool meets `resiliency` (nearest: 2)"), 409)
    admin.open("/sluice/volumes/create/")
    fill(page, size="3", resiliency="9")
    page.get_by_role("button", name="Find the tier").click()
    assert "nearest: 2" in page.locator("#id_resiliency_error").inner_text()
    assert [one.method for one in fake_api.requests if one.method != "GET"] == []


def test_how_far_an_operation_is_and_why_one_failed_is_followed(admin, fake_api):
    page = admin.page
    running = operation(2, state="under_way", step="chosen")
    failed = operation(3, "extend", state="failed", reason="no quota: <b>10 GiB</b>")
    fake_api.say("GET /volumes/operations", {"operations": [failed, running], "next_marker": None})
    for one in (failed, running):
        fake_api.say(f"GET /volumes/operations/{one['id']}", one)
    admin.open(f"/sluice/volumes/{VOLUME}/")
    row = page.locator(f"#operation-{running['id']}")
    assert "waits for an export of Cinder" in row.inner_text()
    assert row.locator("progress").evaluate("one => [one.value, one.max]") == [1, 3]
    assert "no quota: <b>10 GiB</b>" in page.locator(f"#operation-{failed['id']}").inner_text()
    fake_api.say(f"GET /volumes/operations/{running['id']}", {**running, "step": "exported"})
    row.get_by_text("waits for the konnector").wait_for()
    assert page.get_by_role("link", name="Extend", exact=True).count() == 0


def test_what_is_wrong_with_a_volume_is_said(admin, fake_api):
    admin.open(f"/sluice/volumes/{VOLUME}/")
    assert admin.page.get_by_text("Fault", exact=True).count() == 0
    fault = "its attach failed and is undone: `/dev/loop7` is in use by <b>fio</b>"
    fake_api.say(f"GET /volumes/{VOLUME}", volume(fault=fault))
    admin.open(f"/sluice/volumes/{VOLUME}/")
    assert fault in admin.page.locator("#section-state").inner_text()


def test_buttons_are_those_that_the_api_would_not_refuse(admin, fake_api):
    fake_api.say(f"GET /volumes/{VOLUME}", volume(node=None, status="available", attachments=[]))
    fake_api.say("GET /permissions", {"permissions": {"volumes:list_all": True, "volumes:extend": True}})
    fake_api.say("GET /volumes/operations", {"operations": [], "next_marker": None})
    admin.login("admin")
    admin.open(f"/sluice/volumes/{VOLUME}/")
    assert admin.page.locator("#section-state").get_by_role("link").all_inner_texts() == ["Extend"]
    assert admin.page.locator("#section-snapshots").get_by_role("link").count() == 0


def test_a_volume_that_there_is_not_is_said_once(admin, fake_api):
    fake_api.say(f"GET /volumes/{VOLUME}", error_body(404, f"there is no volume `{VOLUME}`"), 404)
    assert admin.open(f"/sluice/volumes/{VOLUME}/").status == 404
    assert admin.page.get_by_text("there is no volume").count() == 1
