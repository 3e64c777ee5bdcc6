"""The rules that operations declare, each with who may do it by default, and the checks that they are made of.

``sluice_controller.api.operations`` declares them; which call needs which rule stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sluice_controller.config import OPERATOR_ROLES

#: Of the names of all operations.
PREFIX: Final = "sluice:"
NOTHING: Final = "nothing"
THING: Final = "thing"


def operator_check(roles: str) -> str:
    """The check of the rule ``operator``, of the value of Swift's option ``operator_roles``."""
    return " or ".join(f"role:{one.strip()}" for one in roles.split(",") if one.strip()) or "!"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of oslo.policy.

    :param check: who may do it by default
    :param help: what it guards
    :param about: whether the rule must know the :data:`THING` that the request is about
    :param everybody: of a list: help of the rule ``<name>_all``, by which administrators are shown everybody's things
    """

    name: str
    check: str
    help: str
    about: str = NOTHING
    everybody: str = ""

    @property
    def needs_no_target(self) -> bool:
        """Whether it can be decided before anything is known of the request but who sends it."""
        return self.about == NOTHING and not self.everybody


ADMIN: Final = "rule:admin"
READER: Final = "rule:admin or role:reader"
READS_OWN: Final = "rule:admin or (role:reader and rule:own)"
#: An agent of the compute cluster: a role of its own for each stereotype, in the projects that it looks after.
APPLIES: Final = "rule:admin or (rule:own and role:stereotype-%(stereotype)s)"
USES_OWN: Final = "rule:admin or (role:member and rule:own)"
#: As Swift takes an object from a project's own users.
WRITES_OBJECTS: Final = "rule:admin or (rule:operator and rule:own)"
WRITES_OWN: Final = "rule:admin or (role:member and rule:own and rule:in_container and rule:self_service)"

#: What the rules of operations are made of.
PARTS: Final = (
    Rule("admin", "role:admin", "administrators of the whole cluster"),
    Rule("operator", operator_check(OPERATOR_ROLES), "Swift lets them write objects; see option operator_roles"),
    Rule("own", "project_id:%(project_id)s", "the thing is in the account of the token's project"),
    Rule("in_container", "'container':%(level)s or 'object':%(level)s", "it is about one container or object"),
    Rule("self_service", "'True':%(self_service)s", "all that it sets or deletes is marked self-service"),
)

#: By name, those of operations alone; filled as these are declared.
BY_NAME: Final[dict[str, Rule]] = {}


def declare(rule: Rule) -> None:
    """Make ``rule`` known, and of a list the one about everybody's things.

    :raises ValueError: when there is another one of its name
    """
    if BY_NAME.setdefault(rule.name, rule) != rule:
        raise ValueError(f"rule `{rule.name}` is declared twice")
    if rule.everybody:
        declare(Rule(f"{rule.name}_all", ADMIN, rule.everybody))
