"""What ``/registry``, ``/stereotypes`` and the deploy calls answer, as plain data."""

from __future__ import annotations

from typing import Any, Final

from sluice_controller.api.render.policies import action_data, code_data, metric_data
from sluice_controller.catalog.entries import StoredRecord
from sluice_controller.catalog.groups import GroupKind, Member
from sluice_controller.catalog.policy_cache import CachedPolicy
from sluice_controller.policies.deployments import Deployment
from sluice_controller.registry.activations import FilterActivation
from sluice_controller.registry.dependencies import UsedDependency
from sluice_controller.registry.metrics import RegisteredMetric
from sluice_controller.validation.times import iso_time
from sluice_core.messages.policies import Upload
from sluice_core.messages.registry import Alias, Group, Stereotype, Term

#: For what was not uploaded.
_NO_CODE: Final = Upload("", "", "", "", "", 0, revision=0)


def born(found: StoredRecord[Any]) -> dict[str, Any]:
    """When and by whom; nobody made what came with the software."""
    at = iso_time(found.created / 1000) if found.created else None
    return {"created_at": at, "created_by": found.created_by}


def group_data(sort: GroupKind, found: StoredRecord[Group]) -> dict[str, Any]:
    """A group of tenants or containers."""
    one = found.thing
    members = {sort.many: list(one.members), "labels": dict(one.labels)}
    return {"id": one.name, "name": one.name, **members, **born(found)}


def member_data(member: Member) -> dict[str, Any]:
    """A member of a group."""
    return {"path": member.path, "label": member.label}


def term_data(found: StoredRecord[Term]) -> dict[str, Any]:
    """A coined or built-in term."""
    one = found.thing
    return {"term": one.name, "patterns": list(one.values), "builtin": not found.created, **born(found)}


def alias_data(found: StoredRecord[Alias]) -> dict[str, Any]:
    """An alias."""
    one = found.thing
    data = {"name": one.name, "of": one.of, "text": one.text, "level": one.level, "params": dict(one.params)}
    return {**data, **born(found)}


def measured_data(one: RegisteredMetric) -> dict[str, Any]:
    """A metric of a plugin, an uploaded or a registered one."""
    upload = one.upload
    code = code_data(upload or _NO_CODE)
    said = {"type": one.type, "location": one.location, "registered": one.registered, "uploaded": upload is not None}
    running = {"running": upload is None or upload.running, "main": upload.main if upload else ""}
    return {**metric_data(one.info), **said, **running, **code}


def registered_data(one: FilterActivation) -> dict[str, Any]:
    """A keyword and its activation URL."""
    given = one.activation
    said = {"url": given.url, "undo": given.undo, "timeout": given.timeout, "federated": one.federated}
    return {**action_data(one.info), "activation": said}


def stereotype_data(found: StoredRecord[Stereotype]) -> dict[str, Any]:
    """A stereotype."""
    one = found.thing
    return {"name": one.name, "text": one.text, "help": one.help, **born(found)}


def applied_data(policies: list[CachedPolicy]) -> dict[str, Any]:
    """A target that a stereotype is applied to, by its policies there."""
    target = policies[0].plan.target
    ids = [one.policy.id for one in policies]
    return {"level": target.level, "target": target.name, "label": target.label, "policies": ids}


def deployed_data(one: Deployment) -> dict[str, Any]:
    """A filter that is set for a target."""
    policy, action = one.policy.policy, one.action
    return {
        "keyword": action.keyword,
        "params": dict(action.params),
        "place": action.place,
        "policy": policy.id,
        "text": policy.text,
        "origin": policy.origin,
        "enabled": policy.enabled,
    }


def dependency_data(one: UsedDependency) -> dict[str, Any]:
    """A dependency and the filters that use it."""
    thing = one.found.thing
    data = {"id": thing.name, "name": thing.name, "help": thing.help, "sha256": thing.sha256}
    state = {"size": thing.size, "revision": thing.revision, "filters": list(one.filters)}
    return {**data, **state, **born(one.found)}
