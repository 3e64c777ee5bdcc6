"""Commands for registered, deployed and restored things, against a real API: one story for each."""

import json

import pytest
import yaml

MADE = {
    "term": (["PAPERS", "--pattern", "pdf", "--pattern", "doc"], ["--pattern", "odt"], "PAPERS"),
    "alias": (["squeeze", "--of", "filter", "--text", "compression"], ["--text", "noop"], "squeeze"),
    "tenant group": (["gold", "--tenant", "AUTH_a"], ["--tenant", "AUTH_b"], "gold"),
    "container group": (["logs", "--container", "AUTH_a/l"], ["--container", "AUTH_b/l"], "logs"),
    "stereotype": (["basic", "--text", "FOR {target} DO SET noop"], ["--help-text", "for all"], "basic"),
    "metric": (
        ["ROOM", "--unit", "bytes", "--type", "gauge", "--granularity", "tenant", "--help-text", "left"],
        ["--help-text", "what is left"],
        "ROOM",
    ),
}


@pytest.mark.parametrize("thing", MADE)
def test_a_registered_thing_is_created_listed_shown_changed_and_deleted(sluice, thing):
    created, changes, name = MADE[thing]
    words = thing.split()
    made = json.loads(sluice(*words, "create", *created, "-f", "json").out)
    assert name in made.values()
    assert name in sluice(*words, "list").out
    assert name in sluice(*words, "list", "--long", "-f", "csv").out
    shown = json.loads(sluice(*words, "show", name, "-f", "json").out)
    assert shown == {**shown, **{field: value for field, value in made.items() if value is not None}}
    changed = json.loads(sluice(*words, "set", name, *changes, "-f", "json").out)
    different = {field for field in shown if shown[field] != changed[field]}
    assert len(different - {"created_at", "created_by"}) == 1
    assert "nothing is to be changed" in sluice(*words, "set", name, status=1).err
    assert f"{name} is deleted" in sluice(*words, "delete", name).out
    assert "(HTTP 404)" in sluice(*words, "show", name, status=1).err


def test_a_term_that_a_policy_uses_is_changed_and_deleted_on_demand_only(sluice, client):
    sluice("term", "create", "PAPERS", "--pattern", "pdf")
    client.create_policy("FOR TENANT AUTH_a WHEN OBJECT_TYPE = PAPERS DO SET noop")
    assert "(HTTP 409)" in sluice("term", "set", "PAPERS", "--pattern", "doc", status=1).err
    changed = sluice("term", "set", "PAPERS", "--pattern", "doc", "--force", "-f", "json")
    assert json.loads(changed.out)["patterns"] == ["doc"]
    assert "(HTTP 409)" in sluice("term", "delete", "PAPERS", status=1).err
    assert sluice("term", "delete", "PAPERS", "--force").out == "term PAPERS is deleted\n"


@pytest.mark.parametrize(
    ("words", "field", "first", "others"),
    [
        (["tenant", "group"], "tenants", "AUTH_a", ["AUTH_b", "AUTH_c"]),
        (["container", "group"], "containers", "AUTH_a/c", ["AUTH_b/c", "AUTH_c/c d"]),
    ],
)
def test_members_come_and_go(sluice, words, field, first, others):
    sluice(*words, "create", "g", f"--{field.removesuffix('s')}", first)
    said = sluice(*words, "add", "g", *others)
    assert said.out.splitlines() == [f"{one} is in group g" for one in others]
    assert json.loads(sluice(*words, "show", "g", "-f", "json").out)[field] == [first, *others]
    assert "not in group g any more" in sluice(*words, "remove", "g", first).out
    assert json.loads(sluice(*words, "show", "g", "-f", "json").out)[field] == others
    assert "(HTTP 404)" in sluice(*words, "add", "none", *others, status=1).err


def test_a_stereotype_is_applied_and_taken_back(sluice, client):
    sluice("stereotype", "create", "basic", "--text", "FOR {target} DO SET noop")
    done = json.loads(sluice("stereotype", "apply", "basic", "AUTH_a", "-f", "json").out)
    assert (done["target"], done["changed"]) == ("AUTH_a", True)
    (policy,) = client.policies()
    assert done["policies"] == [policy["id"]]
    assert sluice("stereotype", "target", "list", "basic", "-f", "value", "-c", "Target").out == "AUTH_a\n"
    assert "unapplied" in sluice("stereotype", "unapply", "basic", "AUTH_a").out
    assert list(client.policies()) == []


def test_a_policy_is_given_another_sentence_and_switched_off_and_on(sluice, client):
    made = client.create_policy("FOR TENANT AUTH_a DO SET noop")
    text = "FOR TENANT AUTH_a DO SET compression"
    assert sluice("policy", "set", made["id"], text, "-f", "value", "-c", "policy").out == text + "\n"
    assert json.loads(sluice("policy", "disable", made["id"], "-f", "json").out)["enabled"] is False
    assert client.policy(made["id"])["enabled"] is False
    assert json.loads(sluice("policy", "enable", made["id"], "-f", "json").out)["enabled"] is True
    assert "did you mean" in sluice("policy", "set", made["id"], "FOR TENANT a DO SET nopp", status=1).err


def test_a_filter_is_deployed_listed_and_taken_back(sluice, client):
    words = ["AUTH_a/c", "compression", "--param", "engine=lz4", "--place", "proxy"]
    done = json.loads(sluice("filter", "deploy", *words, "-f", "json").out)
    assert (done["keyword"], done["params"], done["changed"]) == ("compression", {"engine": "lz4"}, True)
    assert client.policy(done["policy"])["target"]["name"] == "AUTH_a/c"
    assert sluice("filter", "deployment", "list", "AUTH_a/c", "-f", "value", "-c", "Filter").out == "compression\n"
    assert "is undeployed" in sluice("filter", "undeploy", "AUTH_a/c", "compression").out
    assert sluice("filter", "deployment", "list", "AUTH_a/c", "-f", "json").out == "[]\n"


def test_parameters_of_a_deployment_may_stand_beside_its_fields(client):
    done = client.deploy_filter("AUTH_a", "compression", {"engine": "lz4", "place": "proxy"})
    assert (done["params"], done["place"]) == ({"engine": "lz4"}, "proxy")


def test_what_decides_for_a_request_is_shown_with_what_is_overridden(sluice, client):
    broad = client.create_policy("FOR TENANT AUTH_a DO SET compression")
    narrow = client.create_policy("FOR CONTAINER AUTH_a/c DO SET noop")
    words = ["AUTH_a/c/o.pdf", "--method", "PUT", "--size", "1000", "--type", "pdf"]
    table = sluice("effective", "policy", "show", *words).out
    assert f"filter: noop ({narrow['id']}, proxy)" in table
    assert f"filter: not compression ({broad['id']}): " in table
    found = json.loads(sluice("effective", "policy", "show", *words, "-f", "json").out)
    assert found["request"]["size"] == 1000
    client.create_policy("FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=30MBps")
    assert "bandwidth: bandwidth get_bw=30 MB/s (" in sluice("effective", "policy", "show", *words).out
    kinds = json.loads(sluice("effective", "policy", "show", *words, "-f", "json").out)["kinds"]
    assert {"get_bw": 30e6} in [step["params"] for one in kinds for step in one["pipeline"]]
    assert "(HTTP 400)" in sluice("effective", "policy", "show", "AUTH_a", "--size", "many", status=1).err


def test_changes_are_listed_shown_and_gone_back_from(sluice, client):
    client.create_policy("FOR TENANT AUTH_a DO SET noop")
    second = client.create_policy("FOR TENANT AUTH_b DO SET noop")
    newest, oldest = json.loads(sluice("change", "list", "-f", "json").out)
    assert newest["Policies"] == [second["id"]]
    assert json.loads(sluice("change", "list", "--policy", second["id"], "-f", "json").out) == [newest]
    epoch = str(oldest["Epoch"])
    assert f"create policy {second['id']}" in sluice("change", "show", str(newest["Epoch"])).out
    plan = json.loads(sluice("change", "rollback", epoch, "--plan", "-f", "json").out)
    assert (plan["plan"], plan["delete"], len(list(client.policies()))) == (True, 1, 2)
    assert json.loads(sluice("change", "rollback", epoch, "-f", "json").out)["delete"] == 1
    assert [one["target"]["name"] for one in client.policies()] == ["AUTH_a"]


def test_what_is_exported_can_be_imported_and_shows_a_plan_first(sluice, client, tmp_path, monkeypatch):
    made = client.create_policy("FOR TENANT AUTH_a DO SET noop")
    text = sluice("configuration", "export").out
    assert yaml.safe_load(text)["policies"][0]["id"] == made["id"]
    (tmp_path / "all.yaml").write_text(text)
    path = str(tmp_path / "all.yaml")
    same = json.loads(sluice("configuration", "import", path, "-f", "json").out)
    assert (same["create"], same["replace"], same["delete"]) == (0, 0, 0)
    client.delete_policy(made["id"])
    assert f"create policy {made['id']}" in sluice("configuration", "import", path, "--plan").out
    assert list(client.policies()) == []
    assert json.loads(sluice("configuration", "import", path, "-f", "json").out)["create"] == 1
    assert [one["id"] for one in client.policies()] == [made["id"]]
    (tmp_path / "bad.yaml").write_text("sluice: [")
    assert "(HTTP 400)" in sluice("configuration", "import", str(tmp_path / "bad.yaml"), status=1).err
