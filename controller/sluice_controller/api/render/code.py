"""What ``/controllers`` and the roll-outs of uploaded code answer, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sluice_controller.api.render.policies import code_data, upload_data
from sluice_controller.code.controllers import ControllerInstance, state_of
from sluice_controller.code.rollout import Rollout
from sluice_controller.validation.times import iso_time
from sluice_core.messages.policies import Upload


def filter_data(upload: Upload, rollout: Rollout) -> dict[str, Any]:
    """A registered filter and how far its code has come."""
    return {**upload_data(upload), "rollout": rollout.to_data()}


def controller_data(upload: Upload, where: Sequence[ControllerInstance]) -> dict[str, Any]:
    """A controller and how it fares."""
    state, reason = state_of(upload, where)
    return {
        "name": upload.keyword,
        "help": upload.info.get("help", ""),
        "metrics": list(upload.info.get("metrics", ())),
        "period": float(upload.info.get("period", 1.0)),
        "main": upload.main,
        "running": upload.running,
        "state": state,
        "reason": reason,
        "hosts": [one.host for one in where],
        **code_data(upload),
        "created_at": iso_time(upload.created / 1000),
        "created_by": upload.created_by,
    }


def controller_instance_data(one: ControllerInstance) -> dict[str, Any]:
    """A controller on one actor host."""
    return {**asdict(one), "since": _time(one.since), "last_run": _time(one.last_run)}


def _time(seconds: float) -> str | None:
    return iso_time(seconds) if seconds else None
