"""The permissions of callers: one rule per operation, decided by oslo.policy.

* Operations (``sluice_controller.api.operations``) declare their rules with a default.  A policy file overrides them;
  ``sluice-api --sample-policy`` prints all of them.
* A rule sees the credentials of :meth:`sluice_controller.identity.caller.Identity.credentials` and a *target*, a flat
  dictionary of texts: ``project_id`` (the project that owns the object's account), ``level`` (tenant, container,
  object, …) and ``self_service`` (``True`` or ``False``).  Values that do not apply are left out, and a check of
  a missing value fails.
* :class:`Rule` declares whether a target is needed.  A rule without a target is decided before the view
  runs; one about a ``THING`` by the operation, once it knows the object of the request.  The rule of a list
  decides who may list at all; objects of other projects are shown only to callers that ``<rule>_all`` allows.
  ``sluice_controller.api.permissions`` refuses the answer of an operation that did not decide its rule.
* A refusal names the parts of the rule that failed (:func:`missing_rights`).  A rule is a tree of AND, OR
  and named rules.  Of AND, all failed parts are missing; of OR, each alternative would do.  A named rule in
  :data:`WORDS` is explained by its text, any other by its parts.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from oslo_config import cfg
from oslo_policy import policy

from sluice_controller.config import OPERATOR_ROLES
from sluice_controller.identity.caller import Identity

#: Prefix of the names of all operations.
PREFIX: Final = "sluice:"
NOTHING: Final = "nothing"
THING: Final = "thing"


def operator_check(roles: str) -> str:
    """The check of the rule ``operator``, from the value of Swift's option ``operator_roles``."""
    return " or ".join(f"role:{one.strip()}" for one in roles.split(",") if one.strip()) or "!"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of oslo.policy.

    :param check: the default
    :param help: the operation that it guards
    :param about: whether the rule needs the :data:`THING` of the request
    :param everybody: for a list: help of the rule ``<name>_all``, which shows the objects of all projects
    """

    name: str
    check: str
    help: str
    about: str = NOTHING
    everybody: str = ""

    @property
    def needs_no_target(self) -> bool:
        """Whether the identity of the caller is enough to decide it."""
        return self.about == NOTHING and not self.everybody


ADMIN: Final = "rule:admin"
READER: Final = "rule:admin or role:reader"
READS_OWN: Final = "rule:admin or (role:reader and rule:own)"
#: An agent of the compute cluster: a role for each stereotype, in the projects that it may change.
APPLIES: Final = "rule:admin or (rule:own and role:stereotype-%(stereotype)s)"
USES_OWN: Final = "rule:admin or (role:member and rule:own)"
#: The right to write an object in Swift for users of the project.
WRITES_OBJECTS: Final = "rule:admin or (rule:operator and rule:own)"
WRITES_OWN: Final = "rule:admin or (role:member and rule:own and rule:in_container and rule:self_service)"

#: The named rules in the rules of operations.
PARTS: Final = (
    Rule("admin", "role:admin", "administrators of the whole cluster"),
    Rule("operator", operator_check(OPERATOR_ROLES), "may write objects in Swift; see option operator_roles"),
    Rule("own", "project_id:%(project_id)s", "the object is in the account of the token's project"),
    Rule("in_container", "'container':%(level)s or 'object':%(level)s", "the target is one container or object"),
    Rule("self_service", "'True':%(self_service)s", "all filters that it sets or deletes are marked self-service"),
)

#: By name, those of operations alone; filled by their declarations.
BY_NAME: Final[dict[str, Rule]] = {}


def declare(rule: Rule) -> None:
    """Register ``rule``, and for a list the rule about the objects of all projects.

    :raises ValueError: when a rule of this name is registered already
    """
    if BY_NAME.setdefault(rule.name, rule) != rule:
        raise ValueError(f"rule `{rule.name}` is declared twice")
    if rule.everybody:
        declare(Rule(f"{rule.name}_all", ADMIN, rule.everybody))


#: Part of a rule → the right that it needs; ``{…}`` are keys of the target.
WORDS: Final = {
    "own": "a target in the account of the token's own project",
    "in_container": "one container or object by its name as target, which `{level}` is not",
    "self_service": "only filters that the administrator has marked self-service, which {not_self_service} is not",
}


class _Unknown(dict[str, Any]):
    """Values that a target does not have."""

    def __missing__(self, key: str) -> str:
        return "something else"


def missing_rights(enforcer: policy.Enforcer, rule: str, target: Mapping[str, str], creds: Mapping[str, Any]) -> str:
    """The rights that ``creds`` lack for ``rule`` on ``target``; empty if none is missing."""
    check = enforcer.rules.get(rule)
    return _lack(check, enforcer, _Unknown(target), dict(creds)) if check is not None else "a rule of this name"


def _lack(check: Any, enforcer: policy.Enforcer, target: _Unknown, creds: dict[str, Any]) -> str:
    if enforcer.enforce(check, dict(target), dict(creds)):
        return ""
    if isinstance(check, policy.RuleCheck):
        words = WORDS.get(check.match)
        if words is not None:
            return words.format_map(target)
        inner = enforcer.rules.get(check.match)
        return f"`{check}`" if inner is None else _lack(inner, enforcer, target, creds)
    if isinstance(check, policy.AndCheck):
        lacking = [_lack(one, enforcer, target, creds) for one in check.rules]
        return " and ".join(filter(None, lacking))
    if isinstance(check, policy.OrCheck):
        return ", or ".join(_lack(one, enforcer, target, creds) for one in check.rules)
    text = str(check)
    return f"role `{text.removeprefix('role:')}`" if text.startswith("role:") else f"`{text}`"


Target = Mapping[str, str]


class Rules:
    """The rules in force; a policy file is read again when it changes.  Safe to share between threads."""

    def __init__(self, policy_file: str = "", operator_roles: str = OPERATOR_ROLES) -> None:
        self._lock = threading.Lock()
        self._enforcer = enforcer(policy_file, operator_roles)

    def allows(self, identity: Identity, rule: str, target: Target) -> bool:
        """Whether ``identity`` may use ``rule`` on ``target``; an unknown rule allows nothing."""
        with self._lock:
            return bool(self._enforcer.enforce(rule, dict(target), dict(identity.credentials())))

    def missing_rights(self, identity: Identity, rule: str, target: Target) -> str:
        """The missing rights, in words, for a rule that refuses."""
        with self._lock:
            return missing_rights(self._enforcer, rule, dict(target), identity.credentials())

    def is_admin(self, identity: Identity) -> bool:
        """Whether the rule ``admin`` holds."""
        return self.allows(identity, "admin", {})


def enforcer(policy_file: str = "", operator_roles: str = OPERATOR_ROLES) -> policy.Enforcer:
    """An enforcer of the defaults and of the rules in ``policy_file``, which override them.

    :param operator_roles: the option of Swift's keystoneauth

    :raises ValueError, OSError, oslo_config.cfg.Error: when the file cannot be used
    """
    if not BY_NAME:
        raise RuntimeError("the operations, which declare the rules, are not loaded yet")
    conf = cfg.ConfigOpts()
    # Read no file and no folder of other services.
    conf([], project="sluice", default_config_files=[], default_config_dirs=[])
    enforcer = policy.Enforcer(conf, policy_file=str(Path(policy_file).absolute()) if policy_file else None)
    conf.set_override("policy_dirs", [], group="oslo_policy")
    checks = {"operator": operator_check(operator_roles)}
    enforcer.register_defaults(
        [policy.RuleDefault(one.name, checks.get(one.name, one.check), one.help) for one in (*PARTS, *BY_NAME.values())]
    )
    if policy_file:
        _check_file(policy_file)
        enforcer.load_rules()
    else:
        enforcer.use_conf = False
        enforcer.set_rules({one.name: one.check for one in enforcer.registered_rules.values()}, use_conf=False)
    return enforcer


def _check_file(policy_file: str) -> None:
    """Check a file of rules: oslo.policy treats a missing file like an empty one, and a rule that it cannot parse like
    one that refuses everything.
    """
    with open(policy_file, "rb") as file:
        content = policy.parse_file_contents(file.read())
    if not isinstance(content, dict):
        raise ValueError("expected a mapping from names to rules")
    for name, text in content.items():
        if not isinstance(text, str):
            raise ValueError(f"rule `{name}` is not a text")
        if text.strip() != "!" and str(policy.RuleDefault(name, text).check) == "!":
            raise ValueError(f"rule `{name}` is `{text}`, which is not a rule")
