"""The choices in the URL of a monitoring page, and those that the API refuses."""

from django.http import QueryDict

from sluice_client.testing import Reply
from sluice_dashboard.monitoring.choices import (
    ChoiceForm,
    add_refusals,
    known_targets,
    metric_field,
    time_link,
    typed_targets,
)
from sluice_dashboard.names import metric_choices


def refusal(message):
    return {"error": {"code": 404, "title": "", "message": message, "problems": []}}


class OneMetric(ChoiceForm):
    metric = metric_field("Show", "GETS_SEC")


def test_what_the_url_does_not_say_is_chosen_at_first():
    assert [OneMetric(QueryDict(query)).value("metric") for query in ("", "metric=", "metric=X")] == [
        "GETS_SEC",
        "GETS_SEC",
        "X",
    ]


def test_a_metric_that_there_is_not_is_said_at_its_field():
    form = OneMetric(QueryDict("metric=PUTS"))
    form.set_choices("metric", [("GETS_SEC", "Downloads")])
    assert form.errors == {"metric": ["There is no metric of this name."]}


def test_targets_are_typed_with_commas_and_each_counts_once():
    assert typed_targets(" acme, acme/logs,,acme ") == ["acme", "acme/logs"]
    assert len(typed_targets(",".join(map(str, range(100))))) == 8


def test_only_series_of_single_targets_of_the_level_are_offered(stub, client):
    rows = [
        ("AUTH_a", "tenant", False, "acme"),
        ("", "tenant", True, ""),
        ("n1", "node", False, ""),
        ("b", "tenant", False, ""),
    ]
    shown = [{"target": target, "level": level, "rest": rest, "label": label} for target, level, rest, label in rows]
    stub.script = [Reply(body={"series": shown, "next_marker": None})]
    assert known_targets(client, "GETS_SEC", "tenant") == {"AUTH_a": "acme", "b": "b"}


def test_what_the_api_refuses_is_said_at_the_field_of_the_target(stub, client):
    form = OneMetric(QueryDict(""))
    form.set_choices("metric", [("GETS_SEC", "Downloads")])
    stub.script = [Reply(404, refusal("no project `acne`")), Reply(body={"points": []})]
    add_refusals(client, form, "metric", "GETS_SEC", ["acne", "acme"])
    assert form.errors == {"metric": ["no project `acne`"]}


def test_a_link_keeps_the_view_and_fixes_its_time():
    link = time_link(QueryDict("metric=GET_BW&last=3600&to=10000"))
    assert link == {"is_fixed": True, "fixed_query": "metric=GET_BW&from=6400&to=10000"}
    assert not time_link(QueryDict("last=600"))["is_fixed"]


def test_metrics_with_a_name_come_first_and_those_of_other_levels_not_at_all():
    metrics = [("MINE", ["tenant"]), ("NODE_CPU", ["node"]), ("PUTS_SEC", ["tenant"]), ("GETS_SEC", ["container"])]
    known = [{"name": name, "granularities": levels} for name, levels in metrics]
    found = [name for name, _ in metric_choices(known, frozenset({"tenant", "container"}))]
    assert found == ["GETS_SEC", "PUTS_SEC", "MINE"]
