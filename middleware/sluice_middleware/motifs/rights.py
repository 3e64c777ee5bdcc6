"""The rights by which a motif's sources are read: those of the identity that attached it, not those of the reader.

An identity is recorded as the elements of access lists that it matches, separated by commas, and ``owner:ACCOUNT`` for
an account that it owns.  An empty identity is the operator's.  When a source is read, they are compared with the
present access list of its container.  So a project that removes an entry also removes it for attached motifs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sluice_core.errors import PeerError, SluiceError
from sluice_middleware.wsgi.response import Env, OwnersError

#: The operator of the cluster may read all objects.
OPERATOR: Final = ""
#: The longest text of an identity: it is recorded with each motif.
_LONGEST: Final = 400
_OWNER: Final = "owner:"
#: In the cache that Swift's middlewares pass to their own requests: the environment of the client's request.
_CLIENT: Final = "sluice.client"
#: Set by Swift's `keystoneauth` when Keystone has confirmed the user; `REMOTE_USER` is then the project's (id, name).
_KEYSTONE: Final = "keystone.identity"
#: Set by a middleware that has authorized the request itself; `s3api` with access lists then sets `swift_owner` always.
_OVERRIDE: Final = "swift.authorize_override"
_EVERYBODY: Final = ".r:*"
_DENIED: Final = ".r:-"


class client_known:
    """Context in which the middlewares' own requests have the identity of the client of ``env``."""

    __slots__ = ("_env", "_known")

    def __init__(self, env: Env) -> None:
        self._env = env
        self._known: dict[str, Any] = env.setdefault("swift.infocache", {})

    def __enter__(self) -> None:
        self._known[_CLIENT] = self._env

    def __exit__(self, *_: object) -> None:
        self._known.pop(_CLIENT, None)  # else the environment would refer to itself


def identity_of(env: Env, account: str) -> str:
    """The identity behind a request that Swift has authorized for an object in ``account``; never the operator's."""
    kept: list[str] = []
    for element in _elements(env, account):
        if sum(map(len, kept)) + len(kept) + len(element) <= _LONGEST:
            kept.append(element)
    return ",".join(kept) or "anybody"


def public_error(env: Env, account: str, error: SluiceError) -> SluiceError:
    """Return the error for the client: an error that names other projects is shown to owners of ``account`` only."""
    if not isinstance(error, OwnersError) or f"{_OWNER}{account}" in _elements(env, account):
        return error
    public = PeerError(error.PUBLIC)
    public.retry_after = error.retry_after
    return public


def _elements(env: Env, account: str) -> list[str]:
    """All elements of an identity."""
    env = env.get("swift.infocache", {}).get(_CLIENT, env)
    project, groups = _project_and_groups(env)
    owner = bool(env.get("swift_owner"))
    if env.get(_OVERRIDE):  # the prefix of account names before the project's id differs between clusters
        owner = owner and bool(project) and account.endswith(project)
    # tempauth's owners have the account as a group, also when it was another request that Swift authorized
    return [*([f"{_OWNER}{account}"] if owner or account in groups else []), *groups]


def _project_and_groups(env: Env) -> tuple[str, list[str]]:
    """Return the project that Keystone has confirmed, and the elements of access lists that match the user."""
    user: str | tuple[str, str] = env.get("REMOTE_USER") or ""
    if not isinstance(user, tuple):
        # a client may have sent headers like those of Keystone
        return "", [one for one in user.split(",") if one and not one.startswith(_OWNER)]
    # s3api passes on what keystoneauth set, except the identity
    project, identity = user[0], env.get(_KEYSTONE)
    user_id = identity["user"][0] if identity else env.get("swift.access_logging", {}).get("user_id")
    if not project or not user_id:
        return "", []
    return project, [f"{project}:{user_id}", f"*:{user_id}", f"{project}:*", "*:*"]


def may_read(identity: str, account: str, read_acl: Callable[[], str]) -> bool:
    """Whether an identity may read the objects of a container of ``account``.

    :param read_acl: returns the container's access list; called only if the result depends on it
    """
    if identity == OPERATOR:
        return True
    elements = set(identity.split(","))
    if f"{_OWNER}{account}" in elements:
        return True
    listed = {one.strip() for one in read_acl().split(",")}
    if _EVERYBODY in listed and not any(one.startswith(_DENIED) for one in listed):
        return True
    return not listed.isdisjoint(one for one in elements if not one.startswith(_OWNER))
