"""What the panels know of Sluice comes through here: a REST client with the identity of whoever is logged in.

The token is Keystone's, which Horizon keeps in the session; the address is that of service type ``sluice`` in the
catalogue.  Neither is logged.  Everything that goes wrong is a :class:`sluice_client.ClientError`, of which
:func:`failure_of` makes what a page shows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest
from django.utils.translation import gettext
from horizon.exceptions import ServiceCatalogException
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from openstack_dashboard.api import base

from sluice_client import ApiError, Client, ClientError, Unreachable
from sluice_client.rest.transport import Retries

SERVICE: Final = "sluice"
_QUOTED: Final = re.compile(r"`([^`]*)`")
#: Seconds that the API has for an answer; ``SLUICE_TIMEOUT`` in Horizon's settings.
TIMEOUT: Final = 5.0
#: The same for what Horizon wants to know before it shows a page, also of other services.
_SHORT_TIMEOUT: Final = 2.0
#: Who waits for a page waits for no `Retry-After`.
_RETRIES: Final = Retries(tries=2, longest=0.2)
#: Seconds for which permissions are believed, and for which an API that was away is not asked for them again.
_BELIEVED: Final = 30
_AWAY_FOR: Final = 10

#: What a page does about a failure.
AWAY: Final = "away"
REFUSED: Final = "refused"
CONFLICT: Final = "conflict"
MISSING: Final = "missing"
LOGIN: Final = "login"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the API did not do what was asked: ``kind`` is :data:`AWAY`, :data:`REFUSED`, :data:`CONFLICT` …

    ``problems`` are the errors in a policy's text as the API answers them (``message``, ``line``, ``column``,
    ``end_column``, ``near_miss``); ``status`` is the one that a page of ours answers with.
    """

    kind: str
    message: str
    status: int
    problems: tuple[Mapping[str, Any], ...] = ()

    @property
    def quoted(self) -> list[str]:
        """What the message has in backticks: what was typed, or names of fields."""
        return _QUOTED.findall(self.message)

    @property
    def title(self) -> str:
        """The same in two words."""
        titles: dict[str, str] = {
            AWAY: gettext("Sluice does not answer"),
            CONFLICT: gettext("This was changed meanwhile"),
            MISSING: gettext("Not found"),
            LOGIN: gettext("Please log in again"),
        }
        return titles.get(self.kind) or str(gettext("Sluice refuses"))


def client(request: HttpRequest, timeout: float = 0.0) -> Client:
    """A client of the API as the user of ``request``; for this request only.

    :param timeout: seconds for connecting, and for each answer; by default ``SLUICE_TIMEOUT``
    :raises Unreachable: when the catalogue names no API
    """
    try:
        endpoint = base.url_for(request, SERVICE)
    except ServiceCatalogException as error:
        raise Unreachable(gettext("the catalogue of Keystone has no service `sluice`")) from error
    verify = not settings.OPENSTACK_SSL_NO_VERIFY and (settings.OPENSTACK_SSL_CACERT or True)
    session = Session(auth=Token(endpoint, request.user.token.id), verify=verify)
    timeout = timeout or getattr(settings, "SLUICE_TIMEOUT", TIMEOUT)
    return Client.from_session(session, endpoint, timeout=timeout, retries=_RETRIES)


def is_there(request: HttpRequest) -> bool:
    """Whether the user's catalogue has the API."""
    return bool(base.is_service_enabled(request, SERVICE))


def failure_of(error: ClientError) -> Failure:
    """What a page shows of ``error``."""
    if not isinstance(error, ApiError):
        return Failure(AWAY, str(error), 503)
    if error.status == 401:
        return Failure(LOGIN, error.message, 401)
    if error.status == 404:
        return Failure(MISSING, error.message, 404)
    if error.status in (409, 412):
        return Failure(CONFLICT, error.message, 409)
    if error.status >= 500:
        return Failure(AWAY, error.message, 503)
    return Failure(REFUSED, error.message, error.status, error.problems)


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the API would not refuse; ``operations`` is empty while that is not ``known``."""

    operations: Mapping[str, bool] = field(default_factory=dict)
    known: bool = False

    def allow(self, operation: str) -> bool:
        """Whether ``operation``, as ``policies:create``, is allowed; everything is, while nothing is known."""
        return self.operations.get(operation, False) if self.known else True

    def allow_any(self, operations: Iterable[str]) -> bool:
        """Whether one of ``operations`` is."""
        return any(self.allow(operation) for operation in operations)


def permissions(request: HttpRequest, target: str = "", **about: str) -> Permissions:
    """What the user may do, by the rules of the API.

    They are asked for once per request and target, and those without a target twice a minute.  An API that is away
    forbids nothing here: it refuses what is not allowed when it is back.

    :param target: a path, or what follows ``FOR`` in a sentence; empty for what needs none
    :param about: ``policy``, an id, in place of a target; the ``filter`` that is set; the ``stereotype``
    """
    known: dict[object, Permissions] = request.__dict__.setdefault("_sluice_permissions", {})
    if "" not in known:
        known[""] = _remembered(request)
    if not target and not about:
        return known[""]
    key = (target, *sorted(about.items()))
    if key not in known:
        found = _ask(request, target, **about)
        # what is about no target is not in the answer
        known[key] = Permissions({**known[""].operations, **found.operations}, known[""].known and found.known)
    return known[key]


def _remembered(request: HttpRequest) -> Permissions:
    # the token itself must not be readable in a cache that others share
    key = f"sluice-permissions-{hashlib.sha256(request.user.token.id.encode()).hexdigest()}"
    kept = cache.get(key)
    if kept is None:
        found = _ask(request)
        kept = {"operations": found.operations, "known": found.known}
        cache.set(key, kept, _BELIEVED if found.known else _AWAY_FOR)
    return Permissions(**kept)


def _ask(request: HttpRequest, target: str = "", **about: str) -> Permissions:
    try:
        return Permissions(client(request, _SHORT_TIMEOUT).permissions(target, **about), known=True)
    except ClientError:
        return Permissions()
