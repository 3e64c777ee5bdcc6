"""A newer version adds built-ins with names that administrators registered under an older one."""

from dataclasses import replace

import pytest

from sluice_aio.base.ports import free_port
from sluice_controller.app.server import report_takeovers
from sluice_controller.catalog.policy_cache import PolicyCache
from sluice_controller.registry import takeovers
from sluice_core.messages.uploads import FILTER_CODE, Upload
from sluice_core.store.records import Draft
from sluice_core.store.store import Store

COLLECTED = {"name": "ERRORS", "unit": "count", "granularities": ["tenant"], "help": "faults in the vendor's log"}
NEWER = ("ERRORS", "AUDIO", "sanitise", "thumbnail")


@pytest.fixture
def upgrade(backend):
    """The API of a version without some built-ins; a call returns that of this version over the same store."""
    native = backend.native

    def without(words):
        return {name: one for name, one in words.items() if name not in NEWER}

    older = {name: without(getattr(native, name)) for name in ("metrics", "terms", "actions")}
    object.__setattr__(backend, "native", replace(native, **older))

    def done():
        object.__setattr__(backend, "native", native)
        report_takeovers()
        return [one for one in backend.store.events_after("0-0", 100).events if one.kind == "name_taken_over"]

    return done


def register(api, path, body):
    answer = api.post(path, body, format="json")
    assert answer.status_code == 201, answer.content


def warnings(api, policy):
    found = api.get(f"/policies/{policy['id']}").json()["warnings"]
    return [(one["message"], one["column"]) for one in found]


def test_a_metric_that_is_built_in_now_is_named_with_the_policies_that_watch_it(api, create, upgrade, caplog):
    register(api, "/registry/metrics", COLLECTED)
    watching = create("FOR TENANT AUTH_a WHEN ERRORS > 3 DO SET compression TRANSIENT")
    other = create("FOR TENANT AUTH_b WHEN PUTS_SEC > 3 DO SET compression TRANSIENT")
    assert warnings(api, watching) == []
    (event,) = upgrade()
    assert (event.severity, event.subject, event.source) == ("error", "metric/ERRORS", "api")
    assert event.fields == {"policies": [watching["id"]]}
    assert event.text.startswith("metric `ERRORS` is built in (share of responses with a status of 5xx, unit fraction)")
    assert "was registered as another one (unit count)" in event.text
    assert event.text.endswith(f"it concerns policies `{watching['id']}`")
    assert event.text in caplog.text
    ((message, column),) = warnings(api, watching)
    assert event.text.startswith(message)
    assert column == watching["policy"].index("ERRORS") + 1
    assert warnings(api, other) == []


def test_a_restart_logs_it_once(api, create, upgrade):
    register(api, "/registry/metrics", COLLECTED)
    assert len(upgrade()) == 1
    assert len(upgrade()) == 1


def test_a_registration_that_means_nothing_any_more_can_be_deleted_although_policies_watch_the_name(
    api, create, upgrade
):
    register(api, "/registry/metrics", COLLECTED)
    watching = create("FOR TENANT AUTH_a WHEN ERRORS > 3 DO SET compression TRANSIENT")
    upgrade()
    assert api.delete("/registry/metrics/ERRORS").status_code == 204
    assert warnings(api, watching) == []
    assert api.get("/registry/metrics/ERRORS").json()["unit"] == "fraction"
    assert api.delete("/registry/metrics/ERRORS").status_code == 409


def test_an_alias_of_the_metric_is_followed(api, create, upgrade):
    register(api, "/registry/metrics", COLLECTED)
    register(api, "/registry/aliases", {"name": "FAULTS", "of": "metric", "text": "ERRORS"})
    watching = create("FOR TENANT AUTH_a WHEN FAULTS > 3 DO SET compression TRANSIENT")
    upgrade()
    ((message, column),) = warnings(api, watching)
    assert "metric `ERRORS` is built in" in message
    assert column == watching["policy"].index("FAULTS") + 1


def test_a_term_keeps_its_types_in_policies_until_they_are_written_again(api, create, upgrade):
    register(api, "/registry/terms", {"term": "AUDIO", "patterns": ["mp3", "mid"]})
    text = "FOR TENANT AUTH_a WHEN OBJECT_TYPE = AUDIO DO SET compression"
    using = create(text)
    (event,) = upgrade()
    assert event.subject == "term/AUDIO"
    assert "was coined for mp3, mid" in event.text
    ((_, column),) = warnings(api, using)
    assert column == using["policy"].index("AUDIO") + 1
    assert api.delete("/registry/terms/AUDIO").status_code == 204
    assert warnings(api, using) == []


def test_filters_of_services_and_of_uploaded_code_are_named(api, create, backend, upgrade):
    register(api, "/registry/filters", {"keyword": "sanitise", "url": "https://scan.example.org/{target}"})
    code = Upload("thumbnail", "process", "python", "main:Thumb", "0" * 64, 10, kind=FILTER_CODE)
    backend.store.commit(Draft("admin", uploads=(code,)))
    calling = create("FOR TENANT AUTH_a DO SET sanitise")
    running = create("FOR TENANT AUTH_a DO SET thumbnail ON PROXY")
    first, second = upgrade()
    assert (first.subject, second.subject) == ("filter/sanitise", "filter/thumbnail")
    assert "a policy calls the service, until it is written again" in first.text
    assert "nodes run the built-in one" in second.text
    assert [column for _, column in warnings(api, calling)] == [calling["policy"].index("sanitise") + 1]
    assert [column for _, column in warnings(api, running)] == [running["policy"].index("thumbnail") + 1]


def test_nothing_is_said_of_names_that_no_built_in_has(api, create, backend, upgrade):
    register(api, "/registry/metrics", {**COLLECTED, "name": "VENDOR_ERRORS"})
    register(api, "/registry/terms", {"term": "SHEETS", "patterns": ["ods"]})
    assert upgrade() == []
    assert takeovers.find_takeovers(backend, backend.policy_cache.contents()) == []


def test_a_redis_that_is_away_keeps_nobody_from_starting(backend, caplog):
    away = Store(f"redis://127.0.0.1:{free_port()}/0", "away")
    takeovers.report_takeovers(replace(backend, store=away, policy_cache=PolicyCache(away)))
    assert "names that built-ins have taken over are not looked for" in caplog.text
    away.close()


def test_a_document_registers_no_name_of_a_built_in(api, backend, upgrade):
    register(api, "/registry/metrics", COLLECTED)
    upgrade()
    exported = api.get("/export").content
    assert api.put("/import", exported, content_type="application/yaml").status_code == 200  # it exists already
    assert api.delete("/registry/metrics/ERRORS").status_code == 204
    refused = api.put("/import", exported, content_type="application/yaml")
    assert refused.status_code == 400
    assert "metric `ERRORS`" in refused.json()["error"]["message"]
