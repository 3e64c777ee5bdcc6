"""Explains a refused request: the parts of its rule that failed, in words.

A rule is a tree of AND, OR and named rules.  Of AND, all failed parts are missing; of OR, each alternative would do.
A named rule in :data:`WORDS` is explained by its text, any other by its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oslo_policy import policy

#: Part of a rule → what to bring for it; ``{…}`` are keys of the target.
WORDS: Final = {
    "own": "a target in the account of the token's own project",
    "in_container": "one container or object by its name as target, which `{level}` is not",
    "self_service": "only filters that the administrator has marked self-service, which {not_self_service} is not",
}


class _Unknown(dict[str, Any]):
    """What a target does not say."""

    def __missing__(self, key: str) -> str:
        return "something else"


def missing_rights(enforcer: policy.Enforcer, rule: str, target: Mapping[str, str], creds: Mapping[str, Any]) -> str:
    """What ``creds`` lack for ``rule`` on ``target``; empty when nothing is."""
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
