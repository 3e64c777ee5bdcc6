"""Permissions: the rules' defaults, and the effect of a policy file."""

import itertools
import os
import re
import subprocess
import sys

import pytest

from sluice_controller.app.checks import policy_file_faults
from sluice_controller.app.cli import main
from sluice_controller.app.policy_sample import calls_by_rule, declared_rules, sample_policy
from sluice_controller.identity import rules as rules_module
from sluice_controller.identity.caller import ADMIN, Identity
from sluice_controller.identity.rules import PARTS, THING, Rules, enforcer

RULES = declared_rules()

ALICE = Identity.from_user("u-alice", "alice", "acme-id", "acme", ("member", "reader"))
RITA = Identity.from_user("u-rita", "rita", "acme-id", "acme", ("reader",))
CLOUD = Identity.from_user("u-cloud", "cloud", "", "", ("admin", "manager", "member", "reader"))
OLGA = Identity.from_user("u-olga", "olga", "acme-id", "acme", ("SwiftOperator", "reader"))
NOBODY = Identity.from_user("u-nobody", "nobody", "acme-id", "acme", ("other",))
UNSCOPED = Identity.from_user("u-unscoped", "una", "", "", ("member", "reader"))

OWN = {"project_id": "acme-id", "level": "container", "self_service": "True"}
TARGETS = {
    "own": OWN,
    "own object": {**OWN, "level": "object"},
    "own, not self-service": {**OWN, "self_service": "False"},
    "own account": {**OWN, "level": "tenant"},
    "foreign": {**OWN, "project_id": "umbrella-id"},
    "a group": {"level": "group", "self_service": "True"},
    "the cluster": {"level": "cluster", "self_service": "True"},
    "no project": {**OWN, "project_id": ""},
}
READS = {"own", "own object", "own, not self-service", "own account"}
WRITES = {"own", "own object"}
#: Operation → role → targets on which it is allowed; administrators may do everything, all others nothing.
OF_THINGS = {
    "sluice:policies:create": {ALICE: WRITES},
    "sluice:policies:delete": {ALICE: WRITES},
    "sluice:policies:show": {ALICE: READS, RITA: READS, OLGA: READS},
    "sluice:policies:check": {ALICE: READS, RITA: READS, OLGA: READS},
    "sluice:volumes:show": {ALICE: READS, RITA: READS, OLGA: READS},
    "sluice:motifs:show": {ALICE: READS, RITA: READS, OLGA: READS},
    "sluice:motifs:attach": {OLGA: READS},
    "sluice:motifs:detach": {OLGA: READS},
    "sluice:motifs:act": {OLGA: READS},
    "sluice:spaces:show": {ALICE: READS, RITA: READS, OLGA: READS},
    "sluice:volumes:create": {ALICE: READS},
    "sluice:volumes:attach": {ALICE: READS},
    "sluice:volume_operations:show": {ALICE: READS, RITA: READS, OLGA: READS},
}
PEOPLE = (ALICE, RITA, OLGA, NOBODY, UNSCOPED)
READERS = {ALICE, RITA, OLGA, UNSCOPED}
#: Operations about no project's object, which not only administrators may read.
OF_NOTHING = {
    "sluice:aliases:list": READERS,
    "sluice:aliases:show": READERS,
    "sluice:dependencies:list": READERS,
    "sluice:dependencies:show": READERS,
    "sluice:filters:list": READERS,
    "sluice:filters:show": READERS,
    "sluice:metrics:list": READERS,
    "sluice:metrics:show": READERS,
    "sluice:policies:complete": READERS,
    "sluice:motifs:templates": READERS,
    "sluice:permissions:show": {*READERS, NOBODY},
    "sluice:schema:show": {*READERS, NOBODY},
    "sluice:stereotypes:list": READERS,
    "sluice:stereotypes:show": READERS,
    "sluice:terms:list": READERS,
    "sluice:terms:show": READERS,
    "sluice:tiers:list": READERS,
    "sluice:tiers:match": READERS,
    "sluice:tiers:show": READERS,
}


@pytest.fixture(scope="module")
def rules():
    return Rules()


@pytest.mark.parametrize("rule", OF_THINGS)
@pytest.mark.parametrize("what", TARGETS)
def test_what_may_be_done_to_a_thing(rules, rule, what):
    allowed = {who for who in PEOPLE if rules.allows(who, rule, TARGETS[what])}
    assert allowed == {who for who, things in OF_THINGS[rule].items() if what in things}
    assert rules.allows(CLOUD, rule, TARGETS[what])
    assert rules.allows(ADMIN, rule, TARGETS[what])


@pytest.mark.parametrize("rule", [one.name for one in RULES if one.needs_no_target])
def test_what_may_be_done_to_the_cluster(rules, rule):
    assert {who for who in PEOPLE if rules.allows(who, rule, {})} == OF_NOTHING.get(rule, set())
    assert rules.allows(CLOUD, rule, {})


def test_whatever_changes_the_cluster_is_an_administrators(rules):
    calls = calls_by_rule()
    calls["sluice:policies:complete"] = []  # its text is in a body, and it changes nothing
    for one in RULES:
        if one.needs_no_target and any(not call.startswith("GET ") for call in calls[one.name]):
            assert one.name not in OF_NOTHING


@pytest.mark.parametrize("rule", [one.name for one in RULES if one.about == THING])
@pytest.mark.parametrize("what", ["foreign", "a group", "the cluster", "no project"])
def test_nothing_may_be_done_to_what_is_not_ones_own(rules, rule, what):
    assert not any(rules.allows(who, rule, TARGETS[what]) for who in PEOPLE)
    assert rules.allows(CLOUD, rule, TARGETS[what])


@pytest.mark.parametrize("rule", [one.name for one in RULES if one.everybody])
def test_a_list_shows_ones_own_unless_one_is_an_administrator(rules, rule):
    assert {who for who in PEOPLE if rules.allows(who, rule, OWN)} == {ALICE, RITA, OLGA}
    assert not any(rules.allows(who, f"{rule}_all", OWN) for who in PEOPLE)
    assert rules.allows(CLOUD, f"{rule}_all", {})


@pytest.mark.parametrize(
    ("roles", "who"), [("admin, Member", {ALICE}), ("admin, swiftoperator", {OLGA}), ("admin", set()), ("", set())]
)
def test_who_may_write_objects_is_what_swift_is_told(roles, who):
    rules = Rules(operator_roles=roles)
    assert {one for one in PEOPLE if rules.allows(one, "sluice:motifs:attach", OWN)} == who
    assert rules.allows(CLOUD, "sluice:motifs:attach", OWN)


def test_a_rule_that_is_not_there_allows_nobody_anything(rules):
    assert not rules.allows(ADMIN, "sluice:none:such", OWN)


def test_credentials_leave_out_what_is_not_known():
    assert UNSCOPED.credentials() == {"user_id": "u-unscoped", "roles": ["member", "reader"]}
    assert ALICE.name == "alice@acme"
    assert CLOUD.name == "cloud"


def test_a_name_cannot_begin_a_line_of_its_own():
    assert Identity.from_user("u", "eve\nINFO by admin", "p", "a\x00b").name == "eve?INFO by admin@a?b"


MISSING = [
    (RITA, "sluice:policies:create", OWN, "role `admin`, or role `member`"),
    (ALICE, "sluice:nodes:list", {}, "role `admin`"),
    (ALICE, "sluice:policies:create", TARGETS["own account"], "one container or object by its name"),
    (ALICE, "sluice:policies:create", TARGETS["foreign"], "a target in the account of the token's own project"),
    (
        ALICE,
        "sluice:policies:create",
        {**OWN, "self_service": "False", "not_self_service": "`encryption`"},
        "self-service, which `encryption` is not",
    ),
    (ALICE, "sluice:motifs:act", OWN, "role `admin`, or role `swiftoperator`"),
    (ALICE, "sluice:none:such", {}, "a rule of this name"),
]


@pytest.mark.parametrize(("who", "rule", "target", "text"), MISSING)
def test_what_is_missing_is_said(rules, who, rule, target, text):
    assert text in rules.missing_rights(who, rule, target)


def test_every_rule_about_a_thing_looks_at_it_and_no_other_does():
    for one in RULES:
        assert ("rule:own" in one.check) == (one.about == THING or bool(one.everybody)), one.name
        assert not one.everybody or f"{one.name}_all" in {other.name for other in RULES}
        assert calls_by_rule()[one.name] or one.name.endswith("_all")


def test_a_policy_file_changes_what_it_names_and_is_read_again(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text('"sluice:nodes:list": "role:reader"\n')
    rules = Rules(str(path))
    assert rules.allows(RITA, "sluice:nodes:list", {})
    assert not rules.allows(RITA, "sluice:nodes:show", {})
    path.write_text('"sluice:nodes:show": "role:reader"\n')
    os.utime(path, (path.stat().st_mtime + 10,) * 2)
    assert not rules.allows(RITA, "sluice:nodes:list", {})
    assert rules.allows(RITA, "sluice:nodes:show", {})


def test_the_sample_names_every_rule_and_changes_nothing(tmp_path, capsys):
    assert main(["--sample-policy"]) == 0
    text = capsys.readouterr().out
    assert text.strip() == sample_policy().strip()
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    assert enforcer(str(path)).file_rules == {}
    path.write_text(re.sub(r'(?m)^#"', '"', text))
    assert list(policy_file_faults(str(path))) == []
    spoken = enforcer(str(path))
    assert {name: rule.check_str for name, rule in spoken.file_rules.items()} == {
        one.name: one.check for one in itertools.chain(PARTS, RULES)
    }


BAD_FILES = [
    ('"sluice:policies:lst": "role:x"', "sluice.E016", "did you mean `sluice:policies:list`"),
    ('"sluice:nodes:list": "rule:nobody"', "sluice.E016", "refers to a missing rule"),
    ("- a", "sluice.E015", "expected a mapping from names to rules"),
    ("{{{", "sluice.E015", "cannot be used"),
    ('"admin": "((("', "sluice.E015", "which is not a rule"),
    ('"admin": 5', "sluice.E015", "is not a text"),
]


@pytest.mark.parametrize(("text", "number", "says"), BAD_FILES)
def test_a_policy_file_that_cannot_work_is_refused(tmp_path, text, number, says):
    path = tmp_path / "policy.yaml"
    path.write_text(text + "\n")
    (fault,) = policy_file_faults(str(path))
    assert fault.id == number
    assert says in fault.msg


def test_a_missing_policy_file_is_refused(tmp_path):
    (fault,) = policy_file_faults(str(tmp_path / "none.yaml"))
    assert (fault.id, "cannot be read" in fault.msg) == ("sluice.E015", True)


def test_a_policy_file_is_checked_before_the_api_starts_and_loads_nothing_there(tmp_path):
    token, policy, config = (tmp_path / name for name in ("token", "policy.yaml", "api.conf"))
    token.touch(mode=0o600)
    token.write_text("0123456789abcdef\n")
    config.write_text(f"[api]\nauth = token\ntoken_file = {token}\npolicy_file = {policy}\n")
    policy.write_text('"sluice:nodes:lst": "role:x"\n')
    program = (
        "import sys; from sluice_controller.app.cli import can_start; from sluice_controller.config import Config; "
        f"assert not can_start(Config.read({str(config)!r})); "
        "assert not {'django', 'prometheus_client'} & set(sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "did you mean `sluice:nodes:list`" in ended.stderr


def test_rules_cannot_be_made_before_operations_declare_them(monkeypatch):
    monkeypatch.setattr(rules_module, "BY_NAME", {})
    with pytest.raises(RuntimeError, match="are not loaded yet"):
        enforcer()
