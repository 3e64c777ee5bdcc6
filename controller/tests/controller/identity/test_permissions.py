"""The permissions that the API shows are those that it grants."""

import re
from dataclasses import replace

import pytest
from tests.support.controller.checked_client import CheckedClient

from sluice_controller.app.policy_sample import calls_by_rule, declared_rules
from sluice_controller.identity.caller import IDENTITY, Identity
from sluice_controller.identity.projects import ProjectAccounts
from sluice_controller.identity.rules import PREFIX, THING
from sluice_core.errors import CallerError

ADA = replace(Identity.from_user("u-ada", "ada", "cloud-id", "cloud", ("admin", "member", "reader")), is_admin=True)
ALICE = Identity.from_user("u-alice", "alice", "acme-id", "acme", ("member", "reader"))
RITA = Identity.from_user("u-rita", "rita", "acme-id", "acme", ("reader",))
STEVE = Identity.from_user("u-steve", "steve", "acme-id", "acme", ("stereotype-gold",))
ULF = Identity.from_user("u-ulf", "ulf", "umbrella-id", "umbrella", ("member", "reader"))
UNA = Identity.from_user("u-una", "una", roles=("member", "reader"))
NOBODY = Identity.from_user("u-nobody", "nobody", "acme-id", "acme")
PEOPLE = [ADA, ALICE, RITA, STEVE, ULF, UNA, NOBODY]

#: Calls about objects, by the name of their operation; ``{target}`` is a container of its own for each.
ABOUT_THINGS = {
    "policies:create": ("POST", "/policies", "FOR CONTAINER {target} DO SET {filter}"),
    "policies:check": ("POST", "/policies/check", "FOR CONTAINER {target} DO SET {filter}"),
    "policies:show": ("GET", "/policies/{policy}", None),
    "policies:update": ("PUT", "/policies/{policy}", "FOR CONTAINER {target} DO SET {filter} ON PROXY"),
    "policies:firings": ("GET", "/policies/{policy}/firings", None),
    "policies:undo": ("POST", "/policies/{policy}/undo", None),
    "policies:delete": ("DELETE", "/policies/{policy}", None),
    "deployments:list": ("GET", "/filters/{target}/deploy", None),
    "deployments:deploy": ("PUT", "/filters/{target}/deploy/{filter}", ""),
    "deployments:undeploy": ("PUT", "/filters/{target}/undeploy/{filter}", None),
    "stereotypes:applied": ("GET", "/stereotypes/gold/tenants/{target}", None),
    "stereotypes:apply": ("PUT", "/stereotypes/gold/tenants/{target}", None),
    "stereotypes:take_back": ("DELETE", "/stereotypes/gold/tenants/{target}", None),
    "effective:show": ("GET", "/effective?target={target}", None),
    "slos:show": ("GET", "/bw/slo/{account}/get_bw", None),
    "motifs:show": ("GET", "/motifs/{account}/c/o", None),
    "motifs:attach": ("PUT", "/motifs/{account}/c/o", ""),
    "motifs:act": ("POST", "/motifs/{account}/c/o", ""),
    "motifs:detach": ("DELETE", "/motifs/{account}/c/o", None),
    "spaces:show": ("GET", "/spaces/{account}", None),
}
#: Rules of only some requests about volumes of Cinder; ``volumes/`` tests them.
OF_SOME_REQUESTS = {"volumes:adopt", "volumes:force_detach"}


def ask_keystone(self, name):
    """The ids of the projects with this name; a name of several projects is refused."""
    if name == "twins":
        raise CallerError("project `twins` is the name of 2 projects")
    return [f"{name}-id"] if name in ("acme", "umbrella") else []


@pytest.fixture
def keystone(backend, config, monkeypatch):
    """A function that returns the client of a user."""
    from django.test import override_settings

    monkeypatch.setattr(ProjectAccounts, "_ask", ask_keystone)
    with override_settings(SLUICE=replace(config, auth="keystone", self_service="noop")):
        yield lambda identity: CheckedClient(**{IDENTITY: identity})


@pytest.fixture
def forbidden(keystone):
    """Whether an operation on an object of ``account`` is answered by 403."""

    def ask(who, operation, account, word="noop"):
        method, path, text = ABOUT_THINGS[operation]
        names = {"target": f"{account}/{re.sub(':', '-', operation)}", "account": account, "filter": word}
        if "{policy}" in path:
            body = {"policy": "FOR CONTAINER {target} DO SET {filter}".format(**names)}
            names["policy"] = keystone(ADA).post("/policies", body, format="json").json()["id"]
        if operation == "deployments:undeploy":
            keystone(ADA).put("/filters/{target}/deploy/{filter}".format(**names), {}, format="json")
        body = {"policy": text.format(**names)} if text else None if text is None else {}
        answer = keystone(who).generic(method, path.format(**names), *encoded(body))
        return answer.status_code == 403

    return ask


def encoded(body):
    import json

    return () if body is None else (json.dumps(body), "application/json")


def permissions(client, **query):
    answer = client.get("/permissions", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["permissions"]


def plain_call(call):
    """Method, path and body of a call whose names belong to no project."""
    method, _, path = call.partition(" ")
    return method, re.sub(r"\{\w+\}", "none", path), {} if method in ("POST", "PUT") else None


@pytest.mark.parametrize("who", PEOPLE, ids=lambda who: who.name)
def test_without_a_target_it_says_what_is_not_refused_to_ones_own(keystone, forbidden, who):
    said = permissions(keystone(who))
    assert said.keys() == {one.name.removeprefix(PREFIX) for one in declared_rules()}
    calls = calls_by_rule()
    found = {}
    for name in said.keys() - OF_SOME_REQUESTS:
        if name.endswith("_all"):
            found[name] = who is ADA  # it selects the rows of lists, and refuses nothing
        elif name in ABOUT_THINGS:
            if not name.startswith("stereotypes:"):
                found[name] = not forbidden(who, name, f"AUTH_{who.project_id or 'acme-id'}")
        else:
            method, path, body = plain_call(calls[PREFIX + name][0])
            found[name] = keystone(who).generic(method, path, *encoded(body)).status_code != 403
    assert {name: said[name] for name in found} == found


@pytest.mark.parametrize("word", ["noop", "encryption"])
@pytest.mark.parametrize("who", PEOPLE, ids=lambda who: who.name)
def test_of_a_target_it_says_what_is_not_refused_there(keystone, forbidden, who, word):
    said = permissions(keystone(who), target="AUTH_acme-id/logs", filter=word, stereotype="gold")
    assert said.keys() == {one.name.removeprefix(PREFIX) for one in declared_rules() if one.about == THING}
    found = {name: not forbidden(who, name, "AUTH_acme-id", word) for name in ABOUT_THINGS}
    assert {name: said[name] for name in found} == found


def test_of_a_policy_it_says_what_its_actions_allow(keystone):
    ids = {}
    for word in ("noop", "encryption"):
        body = {"policy": f"FOR CONTAINER AUTH_acme-id/{word} DO SET {word}"}
        ids[word] = keystone(ADA).post("/policies", body, format="json").json()["id"]
    may = {word: permissions(keystone(ALICE), policy=ids[word]) for word in ids}
    assert (may["noop"]["policies:delete"], may["encryption"]["policies:delete"]) == (True, False)
    assert may["encryption"]["policies:show"]
    assert permissions(keystone(ULF), policy=ids["noop"]) == permissions(keystone(ULF), policy="none")
    assert not any(permissions(keystone(ULF), policy=ids["noop"]).values())


def test_checking_says_why_one_may_not_save_a_sentence_by_the_rule_of_saving(keystone):
    said = {}
    for word in ("noop", "encryption"):
        body = {"policy": f"FOR CONTAINER AUTH_acme-id/logs DO SET {word}"}
        (found,) = keystone(ALICE).post("/policies/check", body, format="json").json()["policies"]
        said[word] = found["refusal"]
    assert said["noop"] == ""
    refused = keystone(ALICE).post("/policies", body, format="json").json()["error"]["message"]
    assert said["encryption"] == refused


FOREIGN = [
    "AUTH_umbrella-id",
    "AUTH_umbrella-id/logs",
    "AUTH_umbrella-id/logs/a/b",
    "umbrella/logs",
    "AUTH_none",
    "none/at all",
    "twins",
    "GROUP gold",
    "VOLUME AUTH_umbrella-id/v",
    "all tenants",
    "CLUSTER",
]


@pytest.mark.parametrize("target", FOREIGN)
def test_what_is_not_ones_own_is_answered_alike_whether_it_exists_or_not(keystone, target):
    assert not any(permissions(keystone(ALICE), target=target).values())
    assert all(permissions(keystone(ADA), target=target, stereotype="gold").values())


OWN = [
    ("AUTH_acme-id", False),
    ("acme", False),
    ("acme/logs", True),
    ("TENANT AUTH_acme-id", False),
    ("CONTAINER AUTH_acme-id/a b", True),
    ("AUTH_acme-id/logs/2026/a", True),
    ("object AUTH_acme-id/logs/a b", True),
    ("VOLUME AUTH_acme-id/v", False),
]


@pytest.mark.parametrize(("target", "may_create"), OWN)
def test_rules_see_the_level_of_a_target(keystone, target, may_create):
    found = permissions(keystone(ALICE), target=target)
    assert (found["policies:show"], found["policies:create"]) == (True, may_create)


@pytest.mark.parametrize("target", ["/", "AUTH_x/", "AUTH_x//y", "VOLUME x", "CONTAINER x", "OBJECT x/y"])
def test_what_can_be_no_target_is_refused(keystone, target):
    answer = keystone(ALICE).get("/permissions", {"target": target})
    assert answer.status_code == 400
    assert f"`target` is `{target}`, expected account[/container[/object]]" in answer.json()["error"]["message"]


def test_whoever_may_not_take_a_filter_back_is_not_told_whether_it_is_deployed(keystone):
    path = "/filters/AUTH_acme-id/undeploy/noop"
    assert (keystone(ULF).put(path).status_code, keystone(ADA).put(path).status_code) == (403, 404)


def test_a_target_and_a_policy_at_once_are_refused(keystone):
    assert keystone(ALICE).get("/permissions?target=x&policy=y").status_code == 400


def test_whoever_has_no_token_is_told_nothing(backend):
    assert CheckedClient().get("/permissions").status_code == 401
