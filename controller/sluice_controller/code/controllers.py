"""Global controllers: code that decides for the whole cluster; once started, one actor host at a time runs it.

The assignments of a controller belong to the policy ``controller:<name>``, which has no document.  They are removed
in the same change that stops or deletes the controller.  An actor host writes for a controller only
while the version of its code is the known one, so a controller that was just stopped sets nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.nodes import is_alive, wait_until
from sluice_controller.catalog.policy_cache import CacheContents
from sluice_controller.code import revisions
from sluice_controller.code.revisions import CodeKind, IncomingCode, RegisteredCode
from sluice_core.errors import CallerError, Conflict
from sluice_core.messages.uploads import CONTROLLER_CODE, METRIC_CODE, Upload, upload_key
from sluice_core.store.records import Draft

STOPPED: Final = "stopped"
STARTING: Final = "starting"
WAITING: Final = "waiting"
RUNNING: Final = "running"
FAILED: Final = "failed"
#: The states of a controller; one that waits is started, and lacks the first window of a metric.
STATES: Final = (STOPPED, STARTING, WAITING, RUNNING, FAILED)
#: Prefix of the policy id of a controller's assignments.
POLICY_PREFIX: Final = "controller:"
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class ControllerInstance:
    """A controller on a live actor host; times are Unix seconds, 0 for never.

    ``revision`` is the running one, ``seconds`` the duration of its last run, ``assignments`` their number in force.
    """

    host: str
    state: str
    reason: str
    revision: int
    since: float
    last_run: float
    seconds: float
    assignments: int


def policy_of_controller(name: str) -> str:
    """The policy id of the controller's assignments."""
    return f"{POLICY_PREFIX}{name}"


def controller_of(policy: str) -> str:
    """The controller with this policy id; empty for other policies."""
    return policy.removeprefix(POLICY_PREFIX) if policy.startswith(POLICY_PREFIX) else ""


def list_controllers(contents: CacheContents) -> dict[str, Upload]:
    """All controllers by name."""
    return revisions.uploads_of_kind(contents, CONTROLLER_CODE)


def check_name(name: str) -> None:
    """
    :raises CallerError: when it is not a valid name of a controller
    """
    if not _NAME.fullmatch(name):
        raise CallerError(f"`{name}` cannot be a controller's name, expected lower case letters, digits, `_` and `-`")


def put_code(
    backend: Backend, name: str, given: IncomingCode, by: str, expected: int | None = None
) -> tuple[RegisteredCode, bool]:
    """Store code as a new controller, which is stopped, or as another revision; return whether it is new.

    :raises CallerError: 413, 422, or 400 with the fault in the code
    """
    check_name(name)
    old = _CONTROLLERS.find_or_new(backend, name, by, expected)
    return _CONTROLLERS.put_code(backend, old, given, Draft(by)), old.version == 0


def _accept(backend: Backend, old: Upload, new: Upload) -> None:
    if new.running:
        _refuse_blind(backend, new)
        _refuse_second_allocator(backend, new)


_CONTROLLERS: Final = CodeKind(CONTROLLER_CODE, "controller", _accept)
find = _CONTROLLERS.find
roll_back = _CONTROLLERS.roll_back


def _refuse_blind(backend: Backend, upload: Upload) -> None:
    """Refuse a controller that waits for metrics that no node measures: it would only seem to run."""
    catalogue = backend.catalogue
    for name in upload.info.get("metrics", ()):
        if name not in catalogue.metrics:
            meant = catalogue.metric(name)
            hint = f", did you mean `{meant.name}`" if meant else ""
            raise Conflict(f"controller `{upload.keyword}` reads `{name}`, which no node measures here{hint}")


def _refuse_second_allocator(backend: Backend, upload: Upload) -> None:
    """Refuse a second controller that allocates the same method: one of the two would have no effect."""
    for other in list_controllers(backend.policy_cache.contents()).values():
        if not other.running or other.keyword == upload.keyword:
            continue
        for method in upload.info.get("allocates", ()):
            if method in other.info.get("allocates", ()):
                raise Conflict(
                    f"controller `{other.keyword}` runs and allocates the bandwidth of {method}, as "
                    f"`{upload.keyword}` would; stop it first"
                )


def start(backend: Backend, name: str, by: str, expected: int | None = None) -> RegisteredCode:
    """Start the controller on an actor host.

    :raises Conflict: when it reads a metric that is not measured, or another one allocates its methods
    """
    old = find(backend, name, expected)
    if old.upload.running:
        return old
    # Versions are read before the objects that they guard: a metric may be stopped at this moment.
    metrics = [f"upload/{upload_key(METRIC_CODE, one)}" for one in old.upload.info.get("metrics", ())]
    seen = {name: backend.store.version(name) for name in metrics}
    _refuse_blind(backend, old.upload)
    _refuse_second_allocator(backend, old.upload)
    return revisions.commit(backend, replace(old.upload, running=True), old.version, Draft(by, expect=seen))


def stop(backend: Backend, name: str, by: str, expected: int | None = None) -> RegisteredCode:
    """Stop the controller, and remove its assignments, in one change."""
    old = find(backend, name, expected)
    if not old.upload.running:
        return old
    draft = Draft(by, policy_drops=(policy_of_controller(name),))
    return revisions.commit(backend, replace(old.upload, running=False), old.version, draft)


def delete(backend: Backend, name: str, by: str, expected: int | None = None) -> None:
    """Delete the controller, and remove its assignments."""
    old = find(backend, name, expected)
    revisions.drop(backend, old, Draft(by, policy_drops=(policy_of_controller(name),)))


def instances(backend: Backend) -> dict[str, list[ControllerInstance]]:
    """Name → the hosts that run it, from their reports; hosts that have not reported for a while are left out."""
    by_name: dict[str, list[ControllerInstance]] = {}
    for host, report in sorted(backend.store.hosts().items()):
        told = report.get("controllers")
        if is_alive(backend, report) and isinstance(told, Mapping):
            for name, one in told.items():
                if isinstance(one, Mapping):
                    by_name.setdefault(name, []).append(_instance(host, one))
    return by_name


def _instance(host: str, told: Mapping[str, Any]) -> ControllerInstance:
    state = str(told.get("state", ""))
    return ControllerInstance(
        host,
        state if state in STATES else STARTING,
        str(told.get("reason", "")),
        revision=int(_number(told.get("revision"))),
        since=_number(told.get("since")),
        last_run=_number(told.get("last_run")),
        seconds=_number(told.get("seconds")),
        assignments=int(_number(told.get("assignments"))),
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def controller_state(upload: Upload, where: Sequence[ControllerInstance]) -> tuple[str, str]:
    """One of :data:`STATES`, and the reason."""
    if not upload.running:
        return STOPPED, ""
    for one in where:
        if one.state != STARTING:
            return one.state, one.reason
    return STARTING, where[0].reason if where else "no actor host has started it yet"


def wait_settled(backend: Backend, registered: RegisteredCode, seconds: float) -> None:
    """Wait until actor hosts follow the last change, or report why not, at most ``seconds``."""

    def settled() -> bool:
        where = instances(backend).get(registered.upload.keyword, [])
        alive = [one for one in where if one.state not in (STARTING, STOPPED)]
        if not registered.upload.running:
            return not alive
        return any(one.revision == registered.upload.revision or one.reason for one in alive)

    wait_until(backend, settled, seconds)
