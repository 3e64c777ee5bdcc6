"""The configuration as a document to keep, compare and import again (``docs/export.md``).

Policies are exported as sentences.  Plans and assignments are exported only for policies that were *kept* of an actor,
since no sentence names their members.  Code is exported by digest.  Default values are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice_controller.configuration.configuration import Configuration
from sluice_controller.policies.services import KEPT
from sluice_controller.registry.group_documents import fold_members
from sluice_core.messages.policies import Entry, Policy
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE, Upload

#: Version of the format.
FORMAT: Final = 1
#: Name in a document → whether it is always there; the rest of a policy is derived.
POLICY_FIELDS: Final = ("id", "policy", "source", "enabled", "created", "created_by", "origin", "kept")

#: Section of a document → kind of the uploaded code in it.
CODE_SECTIONS: Final[Mapping[str, str]] = {
    "filters": FILTER_CODE,
    "metrics": METRIC_CODE,
    "controllers": CONTROLLER_CODE,
}
#: Fields of an upload that its section and :func:`_origin` say.
_SAID_OTHERWISE: Final = ("kind", "created", "created_by")


def document(configuration: Configuration) -> dict[str, Any]:
    """The whole of it, as plain data in a fixed order."""
    policies = sorted(configuration.policies.values(), key=lambda one: (one.created, one.id))
    return {
        "sluice": FORMAT,
        "policies": [policy_document(one) for one in policies],
        "registry": [entry_document(one) for one in fold_members(configuration.entries)],
        **{
            section: [upload_document(one) for _, one in sorted(configuration.uploads.items()) if one.kind == kind]
            for section, kind in CODE_SECTIONS.items()
        },
    }


def policy_document(policy: Policy) -> dict[str, Any]:
    """One policy."""
    found: dict[str, Any] = {"id": policy.id, "policy": policy.text}
    if policy.source != policy.text:
        found["source"] = policy.source
    if not policy.enabled:
        found["enabled"] = False
    found |= _origin(policy)
    if policy.origin:
        found["origin"] = policy.origin
    if KEPT in policy.plan:
        found[KEPT] = {"plan": {k: v for k, v in policy.plan.items() if k != KEPT}, "assignments": policy.plan[KEPT]}
    return found


def entry_document(entry: Entry) -> dict[str, Any]:
    """One entry of the registry."""
    found: dict[str, Any] = {"kind": entry.kind, "name": entry.name, "data": dict(entry.data)}
    return found | _origin(entry)


def upload_document(upload: Upload) -> dict[str, Any]:
    """One registered filter, uploaded metric or controller; its section says which."""
    defaults = Upload("", "", "", "", "", 0).to_data()
    needed = ("keyword", "environment", "language", "main", "sha256", "size")
    found = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in upload.to_data().items()
        if name in needed or (name not in _SAID_OTHERWISE and value != defaults[name])
    }
    return found | _origin(upload)


def _origin(message: Policy | Entry | Upload) -> dict[str, Any]:
    by = {"created_by": message.created_by} if message.created_by else {}
    return {"created": message.created, **by}
