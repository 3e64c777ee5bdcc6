"""Motifs of single objects, expansions of many, and spaces.

Each question and command about one object is a call to any free daemon.  The API creates operations that expand all
objects of an account, a container or the cluster, and daemons carry them out.  Spaces are shown as the daemons
that keep them reported them last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_controller.catalog import entries
from sluice_controller.catalog.backend import Backend
from sluice_controller.catalog.entries import Page
from sluice_controller.catalog.nodes import wait_until
from sluice_controller.catalog.vocabulary import account_of
from sluice_controller.identity.caller import Identity
from sluice_controller.validation.bodies import Body
from sluice_controller.validation.names import near_miss
from sluice_core.describe import ActionInfo, Scalar
from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound, PeerError
from sluice_core.jobs import new_job_id
from sluice_core.messages.elasticity import WHOLE_CLUSTER
from sluice_dsl.syntax.units import UnitError, read_parameter
from sluice_motif_control import messages as verbs
from sluice_motif_control.actions import VERSIONS
from sluice_motif_control.calls import MotifClient
from sluice_motif_control.messages import CANCELLED, MotifOperation, SpaceStatus
from sluice_motif_control.operations import JOBS, cancel_operation, create_operation, forget_operations
from sluice_motif_control.spaces import read_spaces

#: Seconds that a request waits for an answer.
PATIENCE: Final = 10.0
#: The maximum number of running operations; further ones are refused.
MOST_UNDER_WAY: Final = 100
#: The name of the cluster's space in paths and answers.
CLUSTER: Final = "CLUSTER"


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """An object, with its name in the form of items."""

    account: str
    container: str
    name: str

    def __str__(self) -> str:
        return f"{self.account}/{self.container}/{self.name}"


def call_daemon(backend: Backend, verb: str, seconds: float = 0.0, **arguments: Any) -> Any:
    """Send a request to a daemon and return its answer.

    :param seconds: the wait for it, at least :data:`PATIENCE`
    :raises PeerError: when too many requests wait already, and like ``MotifClient.call``
    """
    if not backend.waiters.acquire(blocking=False):
        raise PeerError("too many requests wait for daemons `sluice-motifs`, try again")
    try:
        return MotifClient(backend.store).call(verb, max(seconds, PATIENCE), **arguments)
    finally:
        backend.waiters.release()


def page_objects(
    backend: Backend,
    accounts: Collection[str] | None,
    account: str = "",
    container: str = "",
    limit: int = 100,
    marker: str = "",
) -> Page[Mapping[str, Any]]:
    """Objects with motifs, by name.

    :param accounts: those that may be shown; None for all
    :raises CallerError: for a container without its account
    :raises Forbidden: for an account that may not be shown
    """
    if container and not account:
        raise CallerError("`container` is given without `account`, expected both")
    found = account_of(backend.native, account) if account else ""
    if accounts is not None:
        found = found or next(iter(accounts), "")
        if found not in accounts:
            raise Forbidden(f"you may not list the objects of account `{found or account}`")
    under = "".join(f"{part}/" for part in (found, container) if part)
    known = call_daemon(backend, verbs.LIST, under=under, marker=marker, limit=limit + 1)
    return Page(known[:limit], known[limit - 1]["item"] if len(known) > limit else "")


def show_object(backend: Backend, path: ObjectPath, why: bool = False) -> Mapping[str, Any]:
    """The state of an object, and with ``why`` the reasons against its contraction."""
    found: Mapping[str, Any] = call_daemon(backend, verbs.WHY if why else verbs.SHOW, item=str(path))
    return found


def attach_motif(
    backend: Backend, path: ObjectPath, template: str, params: Mapping[str, Scalar], identity: str
) -> Mapping[str, Any]:
    """Attach a motif to an object.

    :raises NotFound: when the object or the template does not exist
    :raises CallerError: for parameters that the template does not have
    """
    info = find_template(backend, template)
    read = {name: _read_parameter(info, name, value) for name, value in params.items()}
    found: Mapping[str, Any] = call_daemon(
        backend, verbs.ATTACH, item=str(path), template=info.keyword, params=read, identity=identity
    )
    return found


def find_template(backend: Backend, keyword: str) -> ActionInfo:
    """A template that all daemons have.

    :raises NotFound: when there is none, with the near miss
    :raises PeerError: when no daemon runs
    """
    if backend.motifs is None or not backend.motifs.daemons():
        raise PeerError("motifs: no daemon `sluice-motifs` runs")
    templates = backend.motifs.templates()
    template = templates.get(keyword.lower())
    if template is None:
        hint = near_miss(keyword.lower(), templates, f", expected one of {', '.join(templates)}")
        raise NotFound(f"unknown template `{keyword}`{hint}")
    return template.info


def identity_text(backend: Backend, caller: Identity, account: str) -> str:
    """The attaching identity, in the form of access lists; empty for one that may read everything."""
    if caller.is_admin:
        return ""
    project, user = caller.project_id, caller.user_id
    own = [f"owner:{account}"] if project and account == backend.config.reseller_prefix + project else []
    return ",".join([*own, f"{project}:{user}", f"*:{user}", f"{project}:*", "*:*"])


def _read_parameter(info: ActionInfo, name: str, value: Scalar) -> Scalar:
    """The value of a parameter, which may be a text with a unit."""
    parameter = info.parameter(name)
    if parameter is None and name == VERSIONS:
        return value  # the daemon checks whether the template has the parameter
    if parameter is None:
        hint = near_miss(name, [one.name for one in info.parameters])
        raise CallerError(f"template `{info.keyword}` has no parameter `{name}`{hint}")
    if not isinstance(value, str):
        return value
    try:
        return read_parameter(value, parameter)
    except UnitError as error:
        near = f", did you mean `{error.near_miss}`" if error.near_miss else ""
        raise CallerError(f"parameter `{name}` of template `{info.keyword}`: {error}{near}") from error


def order_expansion(backend: Backend, data: Any, by: str) -> MotifOperation:
    """Create an operation that expands objects.

    :raises CallerError: when the body is not valid
    :raises Conflict: when too many operations are running
    :raises PeerError: when no daemon runs
    """
    body = Body(data, "account", "container")
    account, container = body.text("account", ""), body.text("container", "")
    if container and not account:
        raise CallerError("`container` is given without `account`, expected both")
    if "/" in container:
        raise CallerError(f"`container` is `{container}`, expected a name without a slash")
    if backend.motifs is None or not backend.motifs.daemons():
        raise PeerError("motifs: no daemon `sluice-motifs` runs")
    keys = backend.store.keys
    known = backend.store.run(JOBS.read_all(keys))
    if sum(not one.ended for one in known.values()) >= MOST_UNDER_WAY:
        raise Conflict(f"{MOST_UNDER_WAY} operations have not ended, wait for one of them or cancel it")
    now = backend.now()
    found = account_of(backend.native, account) if account else ""
    made = MotifOperation(new_job_id(int(now * 1000)), found, container, created=now, by=by)
    backend.store.run(create_operation(keys, made))
    backend.store.run(forget_operations(keys, known))
    return made


def page_operations(backend: Backend, limit: int, marker: str, state: str) -> Page[MotifOperation]:
    """Operations, oldest first."""
    known = backend.store.run(JOBS.read_all(backend.store.keys))
    return entries.page({name: one for name, one in known.items() if state in ("", one.state)}, limit, marker)


def find_operation(backend: Backend, operation_id: str, seconds: float = 0.0) -> MotifOperation:
    """An operation, after its end or after ``seconds``.

    :raises NotFound: when there is none
    """
    wait_until(backend, lambda: bool(_read_operation(backend, operation_id).ended), seconds, 0.2)
    return _read_operation(backend, operation_id)


def cancel_expansion(backend: Backend, operation_id: str) -> MotifOperation:
    """Cancel an operation; expanded objects stay expanded.

    :raises NotFound: when there is none
    :raises Conflict: when it has ended already
    """
    found = replace(_read_operation(backend, operation_id), state=CANCELLED, ended=backend.now())
    if not backend.store.run(cancel_operation(backend.store.keys, found)):
        raise Conflict(f"operation `{operation_id}` has ended")
    return found


def _read_operation(backend: Backend, operation_id: str) -> MotifOperation:
    found = backend.store.run(JOBS.read(backend.store.keys, operation_id))
    if found is None:
        raise NotFound(f"there is no operation `{operation_id}`")
    return found


def space_name(status: SpaceStatus) -> str:
    """The name of a space: its path, or ``CLUSTER``."""
    return CLUSTER if status.path == WHOLE_CLUSTER else status.path


def account_of_space(name: str) -> str:
    """The account of a space; empty for the cluster's."""
    return "" if name == CLUSTER else name.partition("/")[0]


def named_space(backend: Backend, name: str) -> str:
    """The name of the space called ``name``, in which a project may stand for its account.

    :raises CallerError: when it begins with neither a project nor an account
    """
    if name == CLUSTER:
        return name
    tenant, slash, container = name.partition("/")
    return f"{account_of(backend.native, tenant)}{slash}{container}"


def page_spaces(
    backend: Backend, accounts: Collection[str] | None, limit: int, marker: str, prefix: str
) -> Page[SpaceStatus]:
    """Spaces by name.

    :param accounts: those that may be shown; None for all
    :param prefix: the beginning of names; in a path, a project may stand for its account
    :raises CallerError: for a path that begins with neither a project nor an account
    """
    known = _known_spaces(backend)
    prefix = named_space(backend, prefix) if "/" in prefix else prefix
    shown = {name: one for name, one in known.items() if accounts is None or account_of_space(name) in accounts}
    return entries.page(shown, limit, marker, prefix)


def find_space(backend: Backend, name: str) -> SpaceStatus:
    """One space.

    :raises NotFound: when no daemon keeps it
    """
    found = _known_spaces(backend).get(name)
    if found is None:
        raise NotFound(
            f"no daemon keeps a space `{name}`, expected a policy that sets `elasticity` for it, objects with motifs "
            "in it and a daemon `sluice-motifs`"
        )
    return found


def _known_spaces(backend: Backend) -> dict[str, SpaceStatus]:
    return {space_name(one): one for one in backend.store.run(read_spaces(backend.store.keys))}
