"""Operations besides policies, against a real API: dependencies, activations, firings, places."""

import json

import pytest

from sluice_core.messages.policies import Firing, PolicyState
from sluice_core.store.records import Draft

JAR = b"PK\3\4" + bytes(range(256))


def as_json(said):
    return json.loads(said.out)


@pytest.fixture
def deployed(client):
    """A registered filter, without code yet."""
    client.register_filter({"keyword": "parse", "environment": "storlet", "language": "java", "main": "org.x.Parse"})


def test_a_dependency_is_described_given_its_data_attached_and_forgotten(sluice, deployed, tmp_path):
    (tmp_path / "io.jar").write_bytes(JAR)
    words = ["dependency", "create", "io.jar", "--help-text", "what it needs", "-f", "json"]
    assert as_json(sluice(*words))["size"] == 0
    made = as_json(sluice("dependency", "upload", "io.jar", str(tmp_path / "io.jar"), "-f", "json"))
    assert (made["size"], made["help"]) == (len(JAR), "what it needs")
    sluice("dependency", "download", "io.jar", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == JAR
    changed = sluice("dependency", "set", "io.jar", "--help-text", "better", "-f", "value", "-c", "help")
    assert changed.out == "better\n"
    used = sluice("dependency", "deploy", "AUTH_a", "io.jar", "--filter", "parse", "-f", "json")
    assert as_json(used)["filters"] == ["parse"]
    assert as_json(sluice("dependency", "list", "-f", "json"))[0]["Filters"] == ["parse"]
    assert as_json(sluice("dependency", "show", "io.jar", "-f", "json"))["filters"] == ["parse"]
    assert "filters `parse` use dependency" in sluice("dependency", "delete", "io.jar", status=1).err
    left = sluice("dependency", "undeploy", "AUTH_a", "io.jar", "--filter", "parse", "-f", "json")
    assert as_json(left)["filters"] == []
    assert sluice("dependency", "delete", "io.jar").out == "dependency io.jar is deleted\n"
    assert "(HTTP 404)" in sluice("dependency", "show", "io.jar", status=1).err


def test_the_files_of_filters_at_a_target_are_listed(sluice, client, deployed, tmp_path):
    assert sluice("dependency", "deployment", "list", "AUTH_a/c", "-f", "json").out == "[]\n"
    sluice("dependency", "create", "io.jar")
    nothing = sluice("dependency", "deploy", "AUTH_a", "io.jar", status=1).err
    assert "has no data yet" in nothing


def test_a_filter_is_activated_by_a_service_and_by_our_own_call_again(sluice):
    service = "https://scan.example.org/{target}/on"
    made = sluice("activation", "create", "compression", "--url", service, "--timeout", "3", "-f", "json")
    assert (as_json(made)["url"], as_json(made)["federated"]) == (service, True)
    changed = as_json(sluice("activation", "set", "compression", "--timeout", "5", "-f", "json"))
    assert (changed["url"], changed["timeout"]) == (service, 5.0)
    known = {one["Filter"]: one for one in as_json(sluice("activation", "list", "-f", "json"))}
    assert known["compression"]["URL"] == service
    assert known["noop"]["Federated"] is False
    assert "nothing is to be changed" in sluice("activation", "set", "compression", status=1).err
    assert sluice("activation", "delete", "compression").out == "activation compression is deleted\n"
    own = as_json(sluice("activation", "show", "compression", "-f", "json"))
    assert (own["federated"], own["url"]) == (False, "/filters/{target}/deploy/{filter}")
    assert "(HTTP 400)" in sluice("activation", "set", "compression", "--timeout", "5", status=1).err


def test_a_policy_shows_what_is_called_for_it(sluice, client):
    made = client.create_policy("FOR TENANT AUTH_a DO SET noop")
    assert "noop: /filters/AUTH_a/deploy/noop, taken back by " in sluice("policy", "show", made["id"]).out


def test_the_last_change_of_a_policy_is_planned_and_undone(sluice, client):
    made = client.create_policy("FOR TENANT AUTH_a DO SET noop")["id"]
    client.delete_policy(made)
    assert as_json(sluice("policy", "rollback", made, "--plan", "-f", "json"))["create"] == 1
    assert list(client.policies()) == []
    sluice("policy", "rollback", made)
    assert [one["id"] for one in client.policies()] == [made]


def test_the_firings_of_a_policy_are_listed_and_narrowed(sluice, client, store):
    made = client.create_policy("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET noop")["id"]
    fired = (Firing(2.0, "taken_back", "AUTH_a", 2), Firing(1.0, "set", "AUTH_a", 1), Firing(0.0, "set", "AUTH_b"))
    store.commit(Draft("actor", states=(PolicyState(made, "active", firings=fired),)))
    assert len(as_json(sluice("policy", "firing", "list", made, "-f", "json"))) == 3
    (one,) = as_json(sluice("policy", "firing", "list", made, "--what", "set", "--member", "AUTH_a", "-f", "json"))
    assert one == {"At": "1970-01-01T00:00:01.000Z", "What": "set", "Member": "AUTH_a", "Window": 1}
    assert "(HTTP 404)" in sluice("policy", "firing", "list", "none", status=1).err


def test_new_containers_go_where_they_were_told_to(sluice):
    made = sluice("placement", "set", "AUTH_a", "gold", "-f", "json")
    assert as_json(made)["storage_policy"] == "gold"
    assert sluice("placement", "list", "--storage-policy", "gold", "-f", "value", "-c", "Account").out == "AUTH_a\n"
    assert as_json(sluice("placement", "show", "AUTH_a", "-f", "json"))["account"] == "AUTH_a"
    assert sluice("placement", "unset", "AUTH_a").out == "placement AUTH_a is unset\n"
    assert "(HTTP 404)" in sluice("placement", "show", "AUTH_a", status=1).err
    assert "did you mean `gold`" in sluice("placement", "set", "AUTH_a", "golde", status=1).err


def test_a_container_is_created_on_a_storage_policy(sluice):
    words = ["container", "create", "AUTH_a/archive", "gold", "-f", "json"]
    assert as_json(sluice(*words))["created"] is True
    assert "expected account/container\n" in sluice("container", "create", "AUTH_a", "gold", status=1).err


def test_the_places_of_an_object_are_shown(sluice):
    words = ["object", "locality", "show", "AUTH_a/c/a/b.pdf"]
    found = as_json(sluice(*words, "-f", "json"))
    assert (found["object"], found["partition"]) == ("a/b.pdf", 7)
    assert "0: 127.0.0.1:6010 sdb1" in sluice(*words).out
    for path in ("AUTH_a", "AUTH_a/c", "AUTH_a//o", "AUTH_a/c/"):
        assert "expected account/container/object\n" in sluice("object", "locality", "show", path, status=1).err
