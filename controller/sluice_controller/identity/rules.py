"""What may be done by whom: one rule per operation, decided by oslo.policy.

* Operations declare their rules with a default (:mod:`default_rules`).  A policy file puts other rules in
  their place; ``sluice-api --sample-policy`` prints all of them.
* A rule sees the credentials of :meth:`sluice_controller.identity.caller.Identity.credentials` and a *target*, a flat
  dictionary of texts: ``project_id`` (the project whose account the thing is in), ``level`` (tenant, container,
  object, …) and ``self_service`` (``True`` or ``False``).  What does not apply is left out, and a check of
  something that was left out fails.
* :class:`~default_rules.Rule` says who must bring the target.  A rule about nothing is decided before the view
  runs; one about a ``THING`` by the operation, once it knows what the request is about.  That of a list
  says who may list at all; everybody's things are shown only to whom ``<rule>_all`` allows it.
  ``sluice_controller.api.permissions`` refuses the answer of an operation that forgot its part.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from oslo_config import cfg
from oslo_policy import policy

from sluice_controller.config import OPERATOR_ROLES
from sluice_controller.identity.caller import Identity
from sluice_controller.identity.default_rules import BY_NAME, PARTS, operator_check
from sluice_controller.identity.denials import missing_rights

Target = Mapping[str, str]


class Rules:
    """The rules in force; a policy file is read again when it changes.  Safe to share between threads."""

    def __init__(self, policy_file: str = "", operator_roles: str = OPERATOR_ROLES) -> None:
        self._lock = threading.Lock()
        self._enforcer = enforcer(policy_file, operator_roles)

    def allows(self, identity: Identity, rule: str, target: Target) -> bool:
        """Whether ``identity`` may do what ``rule`` guards to ``target``; an unknown rule allows nothing."""
        with self._lock:
            return bool(self._enforcer.enforce(rule, dict(target), dict(identity.credentials())))

    def missing_rights(self, identity: Identity, rule: str, target: Target) -> str:
        """What it would take, in words, of a rule that does not allow it."""
        with self._lock:
            return missing_rights(self._enforcer, rule, dict(target), identity.credentials())

    def is_admin(self, identity: Identity) -> bool:
        """Whether the rule ``admin`` holds."""
        return self.allows(identity, "admin", {})


def enforcer(policy_file: str = "", operator_roles: str = OPERATOR_ROLES) -> policy.Enforcer:
    """An enforcer of the defaults and of what ``policy_file`` puts in their place.

    :param operator_roles: the option of Swift's keystoneauth

    :raises ValueError, OSError, oslo_config.cfg.Error: when the file cannot be used
    """
    if not BY_NAME:
        raise RuntimeError("the operations, which declare the rules, are not loaded yet")
    conf = cfg.ConfigOpts()
    # no file and no folder of anybody else
    conf([], project="sluice", default_config_files=[], default_config_dirs=[])
    found = policy.Enforcer(conf, policy_file=str(Path(policy_file).absolute()) if policy_file else None)
    conf.set_override("policy_dirs", [], group="oslo_policy")
    checks = {"operator": operator_check(operator_roles)}
    found.register_defaults(
        [policy.RuleDefault(one.name, checks.get(one.name, one.check), one.help) for one in (*PARTS, *BY_NAME.values())]
    )
    if policy_file:
        _check_file(policy_file)
        found.load_rules()
    else:
        found.use_conf = False
        found.set_rules({one.name: one.check for one in found.registered_rules.values()}, use_conf=False)
    return found


def _check_file(policy_file: str) -> None:
    """oslo.policy takes a file that is not there for an empty one, and a rule that it cannot read for "nobody"."""
    with open(policy_file, "rb") as file:
        content = policy.parse_file_contents(file.read())
    if not isinstance(content, dict):
        raise ValueError("expected names of rules and what they are")
    for name, text in content.items():
        if not isinstance(text, str):
            raise ValueError(f"rule `{name}` is no text")
        if text.strip() != "!" and str(policy.RuleDefault(name, text).check) == "!":
            raise ValueError(f"rule `{name}` is `{text}`, which is no rule")
