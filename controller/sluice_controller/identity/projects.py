"""The names of Keystone's projects as tenants in sentences: each stands for the Swift account of its project.

They are the ``tenants`` of the catalogue: a mapping that looks a name up in Keystone and caches a positive answer
for :data:`REMEMBERED` seconds.  Unknown names are not cached, so that a new project can be named at once.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, Protocol

from keystoneauth1 import exceptions as ksa

from sluice_core.errors import CallerError, PeerError

log = logging.getLogger(__name__)

#: Seconds for which a name is cached.
REMEMBERED: Final = 60.0
#: The maximum length of a project's name in Keystone.
_LONGEST: Final = 64
_IDENTITY: Final = {"service_type": "identity", "version": (3, 0)}
#: The form of Keystone's ids of projects; an account of another form belongs to no project.
_PROJECT_ID: Final = re.compile("[0-9a-f]{32}")


class Session(Protocol):
    """The part of a keystoneauth session that is used here."""

    def get(self, url: str, **kwargs: Any) -> Any:
        """Send a request to Keystone and return its answer."""


class ProjectAccounts(Mapping[str, str]):
    """Project name → Swift account; connects at the first look-up.

    Iteration gives the cached names, for near misses.
    """

    def __init__(
        self, open_session: Callable[[], Session], prefix: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._open_session = open_session
        self._prefix = prefix
        self._now = now
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._known: dict[str, tuple[float, str]] = {}

    def __getitem__(self, name: str) -> str:
        """The account of the project with this name.

        :raises KeyError: when there is none
        :raises CallerError: when several domains have a project with this name
        :raises PeerError: when Keystone cannot be asked
        """
        if name.startswith(self._prefix) or len(name) > _LONGEST:  # an account, or not a valid name
            raise KeyError(name)
        with self._lock:
            at, account = self._known.get(name, (0.0, ""))
            if account and self._now() - at < REMEMBERED:
                return account
        ids = self._ask(name)
        with self._lock:
            self._known.pop(name, None)
            if not ids:
                raise KeyError(name)
            account = self._prefix + ids[0]
            self._known[name] = (self._now(), account)
            return account

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(tuple(self._known))

    def __len__(self) -> int:
        with self._lock:
            return len(self._known)

    def _ask(self, name: str) -> list[str]:
        try:
            if self._session is None:
                self._session = self._open_session()
            answer = self._session.get("/projects", endpoint_filter=_IDENTITY, params={"name": name})
            # Some back ends compare without regard to case.
            ids = [str(one["id"]) for one in answer.json()["projects"] if one["name"] == name]
        except ksa.BadRequest:
            return []
        except ksa.Forbidden as error:
            raise PeerError(
                "keystone does not show projects to our user, expected role `reader` on `system`"
            ) from error
        except (ksa.ClientException, ValueError, KeyError, TypeError) as error:
            raise PeerError(f"keystone cannot be asked for project `{name}`: {type(error).__name__}") from error
        if len(ids) > 1:
            accounts = ", ".join(f"`{self._prefix}{one}`" for one in sorted(ids)[:5])
            raise CallerError(f"project `{name}` is the name of {len(ids)} projects, say one of {accounts}")
        return ids


class ListedProjects:
    """All projects, by the accounts of their ids.

    Reads them from Keystone once in :data:`REMEMBERED` seconds.
    """

    def __init__(
        self, open_session: Callable[[], Session], prefix: str, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._open_session = open_session
        self._prefix = prefix
        self._now = now
        self._lock = threading.Lock()
        self._listed_at = float("-inf")
        self._names: Mapping[str, str] = {}

    def name(self, account: str) -> str:
        """The name of the project of ``account``; empty if it is not known, or several projects have it."""
        if not self._is_project(account):
            return ""
        try:
            name = self._listed(self._open_session()).get(account.removeprefix(self._prefix), "")
        except (ksa.ClientException, ValueError, KeyError, TypeError) as error:
            log.warning("the names of keystone's projects cannot be read: %s", type(error).__name__)
            name = self._names.get(account.removeprefix(self._prefix), "")
        return name if sum(one == name for one in self._names.values()) == 1 else ""

    def deleted(self, accounts: Collection[str]) -> set[str]:
        """The ``accounts`` whose project is deleted; none if Keystone does not answer.

        Each missing project is looked up by its id, since a list may be cut short.
        """
        ids = {one: one.removeprefix(self._prefix) for one in accounts if self._is_project(one)}
        if not ids:
            return set()
        try:
            session = self._open_session()
            there = self._listed(session)
            return {account for account, name in ids.items() if name not in there and _is_deleted(session, name)}
        except (ksa.ClientException, ValueError, KeyError, TypeError) as error:
            log.warning("the projects of keystone cannot be read: %s", type(error).__name__)
            return set()

    def _is_project(self, account: str) -> bool:
        return account.startswith(self._prefix) and bool(_PROJECT_ID.fullmatch(account, pos=len(self._prefix)))

    def _listed(self, session: Session) -> Mapping[str, str]:
        """Id → name of all projects."""
        with self._lock:
            if self._now() - self._listed_at >= REMEMBERED:
                self._listed_at = self._now()  # a read that fails is not repeated at once
                answer = session.get("/projects", endpoint_filter=_IDENTITY)
                self._names = {str(one["id"]): str(one.get("name", "")) for one in answer.json()["projects"]}
            return self._names


def _is_deleted(session: Session, project: str) -> bool:
    try:
        session.get(f"/projects/{project}", endpoint_filter=_IDENTITY)
    except ksa.NotFound:
        return True
    return False
