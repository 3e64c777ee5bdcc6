"""What the API answers, as plain data; ``serializers`` describes the same shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from sluice_controller.catalog.enforcement import Cluster
from sluice_controller.catalog.selectors import PolicyView
from sluice_controller.validation.times import iso_time
from sluice_core.describe import ActionInfo, MetricInfo
from sluice_core.messages.policies import Firing, NodeReport, Policy, Revision, Target, Upload, policy_of_assignment
from sluice_core.store.records import Head
from sluice_dsl.compile import Compiled
from sluice_dsl.diagnostics import Diagnostic
from sluice_dsl.plan import Plan
from sluice_dsl.syntax.keywords import QUOTED

#: Canonical text has its keywords in upper case, and quotes every name that looks like one.
_part: Final = re.compile(rf"{QUOTED}|(?<=\s)(WHEN|SUSTAINED|DO)(?=\s)")


def condition_text(text: str) -> str:
    """What stands behind WHEN in a canonical sentence; empty when it has no WHEN."""
    begin = None
    for match in _part.finditer(text):
        if match[1] == "WHEN":
            begin = match.end()
        elif match[1] in ("SUSTAINED", "DO"):
            return "" if begin is None else text[begin : match.start()].strip()
    return ""


def policy_data(view: PolicyView) -> dict[str, Any]:
    """A policy and how it fares."""
    policy, plan = view.cached.policy, view.cached.plan
    return {
        "id": policy.id,
        "version": view.cached.version,
        "state": view.status,
        "enabled": policy.enabled,
        "reason": view.state.reason if view.state else "",
        "created_at": iso_time(policy.created / 1000),
        "created_by": policy.created_by,
        "origin": policy.origin,
        **_sentence(policy, plan),
        "epoch": view.epoch,
        "enforced": view.enforcement.to_data(),
        "firings": [firing_data(one) for one in view.state.firings] if view.state else [],
        "observed": view.observed,
    }


def _sentence(policy: Policy | Compiled, plan: Plan) -> dict[str, Any]:
    return {
        "policy": policy.text,
        "source": policy.source,
        "dynamic": plan.dynamic,
        "target": _target(plan.target),
        "condition": condition_text(policy.text),
        "sustained": plan.sustained,
        "actions": [one.to_data() for one in plan.actions],
    }


def _target(target: Target) -> dict[str, str]:
    return target.to_data()


def firing_data(firing: Firing) -> dict[str, Any]:
    """Something that an actor did."""
    return {"at": iso_time(firing.at), "what": firing.what, "member": firing.member, "window": firing.window}


def written_data(view: PolicyView, warnings: Iterable[Diagnostic]) -> dict[str, Any]:
    """A policy that was created or changed just now, with the warnings about its text."""
    return {**policy_data(view), "warnings": [one.to_data() for one in warnings]}


def checked_data(compiled: Compiled) -> dict[str, Any]:
    """A sentence that was checked only."""
    return {
        **_sentence(compiled, compiled.plan),
        "plan": compiled.plan.to_data(),
        "warnings": [one.to_data() for one in compiled.warnings],
    }


def node_data(node: NodeReport, cluster: Cluster) -> dict[str, Any]:
    """A node's last report."""
    return {
        "node": node.node,
        "state": cluster.state(node),
        "detail": node.detail,
        "history": node.history,
        "epoch": node.epoch,
        "refused": [
            {"assignment": assignment, "policy": policy_of_assignment(assignment), "reason": reason}
            for assignment, reason in node.refused.items()
        ],
        "workers": node.workers,
        "assignments": node.assignments,
        "dropped": node.dropped,
        "storage": node.storage,
        "code": dict(node.code),
        "sandbox": dict(node.sandbox),
        "software": node.software,
        "started_at": iso_time(node.started),
        "reported_at": iso_time(node.at),
    }


def head_data(head: Head) -> dict[str, Any]:
    """A history and its epoch."""
    return {"history": head.history, "epoch": head.epoch}


def action_data(info: ActionInfo) -> dict[str, Any]:
    """A filter or another keyword of ``DO SET``."""
    data = asdict(info)
    data["places"] = list(info.places)
    data["parameters"] = [{**asdict(one), "choices": list(one.choices)} for one in info.parameters]
    return data


def upload_data(upload: Upload) -> dict[str, Any]:
    """A filter registered at run time, without how far it has come."""
    info = dict(upload.info)
    return {
        "id": upload.keyword,
        "keyword": upload.keyword,
        "environment": upload.environment,
        "language": upload.language,
        "main": upload.main,
        "reverse": upload.reverse,
        "self_service": upload.self_service,
        "help": info.pop("help", ""),
        "parameters": info.pop("parameters", []),
        "capabilities": info,
        **code_data(upload),
        "created": upload.created,
        "created_by": upload.created_by,
    }


def code_data(upload: Upload) -> dict[str, Any]:
    """The code of something that was uploaded, and its earlier revisions, newest first."""
    return {
        "sha256": upload.sha256,
        "size": upload.size,
        "revision": upload.revision,
        "uploaded_at": _when(upload.uploaded),
        "uploaded_by": upload.uploaded_by,
        "revisions": [revision_data(one) for one in upload.revisions],
    }


def revision_data(one: Revision) -> dict[str, Any]:
    """An earlier revision, which can be gone back to."""
    return {
        "revision": one.number,
        "sha256": one.sha256,
        "size": one.size,
        "main": one.main,
        "uploaded_at": _when(one.created),
        "uploaded_by": one.created_by,
    }


def _when(milliseconds: int) -> str | None:
    return iso_time(milliseconds / 1000) if milliseconds else None


def metric_data(info: MetricInfo) -> dict[str, Any]:
    """A workload metric."""
    return {**asdict(info), "granularities": list(info.granularities), "aliases": list(info.aliases)}
