"""Requests by users of Keystone: only the middleware's values in the environment decide."""

from dataclasses import replace

import pytest

from sluice_controller.identity.caller import AWAY, IDENTITY, Identity

ALICE = Identity.from_user("u-alice", "alice", "acme-id", "acme", ("member", "reader"))
RITA = Identity.from_user("u-rita", "rita", "acme-id", "acme", ("reader",))
ULF = Identity.from_user("u-ulf", "ulf", "umbrella-id", "umbrella", ("member", "reader"))
UNA = Identity.from_user("u-una", "una", roles=("member", "reader"))
ADA = replace(Identity.from_user("u-ada", "ada", "acme-id", "acme", ("admin", "member", "reader")), is_admin=True)

OWN = "FOR CONTAINER AUTH_acme-id/logs DO SET noop"
#: Headers with which keystonemiddleware passes an identity on; a client that sends them gains nothing.
SPOOFED = {
    "X-Identity-Status": "Confirmed",
    "X-Roles": "admin",
    "X-User-Id": "u-ada",
    "X-User-Name": "ada",
    "X-Project-Id": "acme-id",
    "X-Service-Identity-Status": "Confirmed",
    "X-Service-Roles": "service",
    "Sluice.Identity": "admin",
}


@pytest.fixture
def keystone(backend, config):
    """A function that returns the client of a user, or one without a token."""
    from django.test import override_settings
    from tests.support.controller.checked_client import CheckedClient

    def client(identity=None, **more):
        environment = {IDENTITY: identity} if identity else {}
        return CheckedClient(**environment, **more)

    with override_settings(SLUICE=replace(config, auth="keystone", self_service="noop, Compression")):
        yield client


def create(client, sentence):
    return client.post("/policies", {"policy": sentence}, format="json")


def message(answer):
    return answer.json()["error"]["message"]


def test_a_member_manages_policies_of_its_own_containers(keystone):
    alice = keystone(ALICE)
    made = create(alice, OWN)
    assert made.status_code == 201, made.content
    assert made.json()["created_by"] == "alice@acme"
    path = f"/policies/{made.json()['id']}"
    assert keystone(RITA).get(path).status_code == 200
    assert keystone(RITA).head(path).status_code == 200
    assert keystone(RITA).delete(path).status_code == 403
    assert keystone(ULF).get(path).status_code == 403
    assert keystone(ULF).delete(path).status_code == 403
    assert alice.delete(path).status_code == 204


@pytest.mark.parametrize("sentence", ["FOR CONTAINER AUTH_umbrella-id/x DO SET noop", "FOR CLUSTER DO SET noop"])
def test_a_member_cannot_turn_its_own_policy_into_one_for_others(keystone, backend, sentence):
    path = f"/policies/{create(keystone(ALICE), OWN).json()['id']}"
    refused = keystone(ALICE).put(path, {"policy": sentence}, format="json")
    assert refused.status_code == 403, refused.content
    ((policy, _),) = backend.store.policies()
    assert policy.source == OWN
    assert keystone(ALICE).put(path, {"policy": OWN.replace("noop", "compression")}, format="json").status_code == 200


REFUSED = [
    (ULF, OWN, "a target in the account of the token's own project"),
    (ALICE, "FOR TENANT AUTH_acme-id DO SET noop", "which `tenant` is not"),
    (ALICE, "FOR ALL TENANTS DO SET noop", "which `all` is not"),
    (ALICE, "FOR CLUSTER DO SET noop", "which `cluster` is not"),
    (ALICE, "FOR CONTAINER AUTH_acme-id/x DO SET encryption", "which `encryption` is not"),
    (ALICE, "FOR CONTAINER AUTH_acme-id/x DO SET compression, SET encryption", "which `encryption` is not"),
    (ALICE, "FOR CONTAINER AUTH_acme-id/x DO DELETE encryption", "which `encryption` is not"),
    (ALICE, f"{OWN}; FOR CONTAINER AUTH_umbrella-id/x DO SET noop", "a target in the account"),
    (RITA, OWN, "role `member`"),
    (UNA, OWN, "a target in the account of the token's own project"),
    (UNA, "FOR CONTAINER AUTH_/x DO SET noop", "a target in the account of the token's own project"),
]


@pytest.mark.parametrize(("who", "sentence", "text"), REFUSED)
def test_a_forbidden_request_is_403_and_changes_nothing(keystone, backend, who, sentence, text):
    answer = create(keystone(who), sentence)
    assert answer.status_code == 403
    assert message(answer).startswith(f"`sluice:policies:create` is not allowed to `{who.name}`, it takes role `admin`")
    assert text in message(answer)
    assert backend.store.policies() == []


def test_reading_the_body_comes_after_the_first_refusal(keystone):
    answer = keystone(RITA).post("/policies", b"{", content_type="application/json")
    assert answer.status_code == 403


def test_lists_show_what_one_may_see_and_their_pages_are_full(keystone):
    for number in range(5):
        for account in ("AUTH_acme-id", "AUTH_umbrella-id"):
            assert create(keystone(ADA), f"FOR CONTAINER {account}/c{number} DO SET noop").status_code == 201
    create(keystone(ADA), "FOR ALL TENANTS DO SET compression")

    def pages(who):
        marker, found = "", []
        while True:
            page = keystone(who).get(f"/policies?limit=2{marker}").json()
            found.append([one["target"]["name"] for one in page["policies"]])
            if page["next_marker"] is None:
                return found
            marker = f"&marker={page['next_marker']}"

    own = [f"AUTH_acme-id/c{number}" for number in range(5)]
    assert pages(RITA) == [own[:2], own[2:4], own[4:]]
    assert sum(len(page) for page in pages(ADA)) == 11
    assert pages(ULF)[0] == ["AUTH_umbrella-id/c0", "AUTH_umbrella-id/c1"]
    assert keystone(UNA).get("/policies").status_code == 403


def test_whoever_may_list_sees_no_more_of_others_for_that(keystone, tmp_path):
    """A policy file may let users list policies in any project; they see no project here, or their own."""
    from django.conf import settings
    from django.test import override_settings

    path = tmp_path / "policy.yaml"
    path.write_text('"sluice:policies:list": "role:reader"\n')
    for sentence in (OWN, "FOR CONTAINER AUTH_umbrella-id/x DO SET noop"):
        assert create(keystone(ADA), sentence).status_code == 201
    with override_settings(SLUICE=replace(settings.SLUICE, policy_file=str(path))):
        rita, una = (keystone(who).get("/policies").json()["policies"] for who in (RITA, UNA))
    assert [one["target"]["name"] for one in rita] == ["AUTH_acme-id/logs"]
    assert una == []


def test_an_administrator_without_a_project_sees_everything(keystone):
    cloud = replace(Identity.from_user("u-cloud", "cloud", roles=("admin", "reader")), is_admin=True)
    made = create(keystone(cloud), OWN)
    assert made.json()["created_by"] == "cloud"
    assert len(keystone(cloud).get("/policies").json()["policies"]) == 1
    assert keystone(cloud).get("/nodes").status_code == 200


def test_a_registered_filter_that_is_marked_may_be_used(keystone):
    described = {"keyword": "mine", "environment": "wasm", "language": "wasm", "main": "x", "self_service": True}
    made = keystone(ADA).post("/filters", described, format="json")
    assert (made.status_code, made.json()["self_service"]) == (201, True)
    assert keystone(ALICE).get("/filters/mine").json()["self_service"] is True
    again = keystone(ADA).put("/filters/mine", {"self_service": False}, format="json")
    assert again.json()["self_service"] is False
    assert keystone(ADA).put("/filters/mine", {"self_service": "yes"}, format="json").status_code == 400
    for answer in (
        keystone(ALICE).post("/filters", described, format="json"),
        keystone(ALICE).put("/filters/mine", {"self_service": True}, format="json"),
        keystone(ALICE).put("/filters/mine/data", b"x", content_type="application/octet-stream"),
        keystone(ALICE).delete("/filters/mine"),
        keystone(ALICE).post("/nodes/adopt"),
    ):
        assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/policies", "/nodes", "/filters", "/schema", "/registry/metrics"])
def test_identity_headers_of_clients_are_ignored(keystone, path):
    answer = keystone(headers=SPOOFED).get(path)
    assert answer.status_code == 401
    assert keystone(headers={**SPOOFED, "X-Auth-Token": "x"}).get(path).status_code == 401
    assert keystone(RITA, headers=SPOOFED).get("/nodes").status_code == 403


def test_the_static_token_is_refused_with_keystone(keystone, token_file):
    assert keystone(headers={"X-Auth-Token": token_file.read_text().strip()}).get("/policies").status_code == 401


def test_a_text_is_no_identity(keystone):
    assert keystone("admin").get("/policies").status_code == 401


def test_keystone_that_is_away_is_503_and_health_goes_on(keystone):
    client = keystone(**{AWAY: "keystone is away"})
    answer = client.get("/policies")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert client.get("/health").status_code == 200


def test_the_answer_of_a_view_that_did_not_authorize_is_withheld(keystone, monkeypatch, caplog):
    made = create(keystone(ALICE), OWN).json()
    monkeypatch.setattr("sluice_controller.api.view.View.plan_authorizer", lambda self, request: lambda plans: None)
    client = keystone(ULF)
    answer = client.get(f"/policies/{made['id']}")
    assert answer.status_code == 500
    assert made["id"] not in answer.content.decode().replace(f"/policies/{made['id']}", "")
    assert "was never decided" in str(caplog.records[-1].exc_info or [one.exc_info for one in caplog.records])


def test_every_rule_is_asked_by_an_operation(config):
    from sluice_controller.app.checks import check_operations
    from sluice_controller.app.policy_sample import calls_by_rule, declared_rules

    assert check_operations() == []
    asked = {one.name for one in declared_rules() if not one.name.endswith("_all")}
    assert calls_by_rule().keys() - {"open"} == asked


def test_an_operation_whose_rule_nobody_declares_is_reported_and_refuses(keystone, monkeypatch):
    from sluice_controller.api import openapi, routes
    from sluice_controller.api.permissions import Forbidden, RulePermission
    from sluice_controller.api.view import View
    from sluice_controller.app.checks import check_operations

    monkeypatch.setattr(openapi, "OPERATIONS", known := [])
    monkeypatch.setattr(routes, "OPERATIONS", known)

    @openapi.operation("GET /bare", "sluice:none:such", None)
    def bare(view: View, request):
        """An operation without an effect."""
        raise AssertionError

    assert [one.msg for one in check_operations()] == ["`GET /bare` names `sluice:none:such`, which is not a rule"]
    request = type("Request", (), {"user": ADA, "method": "GET"})
    view = routes.make_view(known)()
    view.request = request
    with pytest.raises(Forbidden, match="is not a rule of this API"):
        RulePermission().has_permission(request, view)


def test_a_call_that_two_operations_answer_is_an_error(monkeypatch):
    from sluice_controller.api import openapi, routes
    from sluice_controller.api.view import View

    monkeypatch.setattr(openapi, "OPERATIONS", known := [])
    monkeypatch.setattr(routes, "OPERATIONS", known)

    def twice(view: View, request):
        """An operation without an effect."""

    for _ in range(2):
        openapi.operation("GET /twice", "open", None)(twice)
    with pytest.raises(ValueError, match="`GET /twice` is declared twice"):
        routes.make_urlpatterns()


def test_a_rule_of_two_kinds_is_an_error():
    from sluice_controller.identity.rules import Rule, declare

    with pytest.raises(ValueError, match="rule `sluice:nodes:list` is declared twice"):
        declare(Rule("sluice:nodes:list", "@", "somebody else's"))


def test_a_path_asks_for_no_token_only_where_all_its_operations_are_open(monkeypatch):
    from sluice_controller.api import openapi, routes
    from sluice_controller.api.permissions import OPEN
    from sluice_controller.api.view import View

    monkeypatch.setattr(openapi, "OPERATIONS", known := [])

    def shown(view: View, request):
        """An operation without an effect."""

    openapi.operation("GET /both", OPEN, None)(shown)
    assert routes.make_view(known).permission_classes == (routes.AllowAny,)
    openapi.operation("PUT /both", "sluice:nodes:adopt", None, name="changed")(shown)
    assert routes.make_view(known).permission_classes == View.permission_classes
    assert routes.make_view(known).authentication_classes == View.authentication_classes
