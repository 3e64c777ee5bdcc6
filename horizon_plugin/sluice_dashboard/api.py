"""The panels' only module that calls Sluice: a REST client with the identity of the logged-in user.

The token is Keystone's, which Horizon keeps in the session; the address is that of service type ``sluice`` in the
catalogue.  Neither is logged.  Every failure is a :class:`sluice_client.ClientError`; :func:`failure_of` converts it
for a page.
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
#: The same for calls before a page is shown, also to other services.
_SHORT_TIMEOUT: Final = 2.0
#: A user waits for the page, so `Retry-After` is not waited for.
_RETRIES: Final = Retries(tries=2, longest=0.2)
#: Seconds for which permissions are cached, and for which an unreachable API is not called for them again.
_BELIEVED: Final = 30
_AWAY_FOR: Final = 10

#: Kinds of failures, by the reaction of a page.
AWAY: Final = "away"
REFUSED: Final = "refused"
CONFLICT: Final = "conflict"
MISSING: Final = "missing"
LOGIN: Final = "login"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call of the API failed: ``kind`` is :data:`AWAY`, :data:`REFUSED`, :data:`CONFLICT` …

    ``problems`` are the errors in a policy's text as the API answers them (``message``, ``line``, ``column``,
    ``end_column``, ``near_miss``); ``status`` is the one that a page of ours answers with.
    """

    kind: str
    message: str
    status: int
    problems: tuple[Mapping[str, Any], ...] = ()

    @property
    def quoted(self) -> list[str]:
        """The texts in backticks of the message: typed text, or names of fields."""
        return _QUOTED.findall(self.message)

    @property
    def title(self) -> str:
        """The message in two words."""
        titles: dict[str, str] = {
            AWAY: gettext("Sluice does not answer"),
            CONFLICT: gettext("This was changed meanwhile"),
            MISSING: gettext("Not found"),
            LOGIN: gettext("Please log in again"),
        }
        return titles.get(self.kind) or str(gettext("Sluice refuses"))


def client(request: HttpRequest, timeout: float = 0.0) -> Client:
    """Return a client of the API as the user of ``request``; for this request only.

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
    """Convert ``error`` for a page."""
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
    """The operations that the API permits; ``operations`` is empty while they are not ``known``."""

    operations: Mapping[str, bool] = field(default_factory=dict)
    known: bool = False

    def allow(self, operation: str) -> bool:
        """Whether ``operation``, as ``policies:create``, is allowed; True while permissions are not known."""
        return self.operations.get(operation, False) if self.known else True

    def allow_any(self, operations: Iterable[str]) -> bool:
        """Whether at least one of ``operations`` is allowed."""
        return any(self.allow(operation) for operation in operations)


def permissions(request: HttpRequest, target: str = "", **about: str) -> Permissions:
    """Return the user's permissions, by the rules of the API.

    The API is called once per request and target, and without a target twice a minute.  While it is unreachable, this
    returns all as allowed: the API itself refuses operations when it is back.

    :param target: a path, or the text after ``FOR`` in a sentence; empty for operations without a target
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
        # operations without a target are missing in the answer
        known[key] = Permissions({**known[""].operations, **found.operations}, known[""].known and found.known)
    return known[key]


def _remembered(request: HttpRequest) -> Permissions:
    # a shared cache must not contain the token itself in readable form
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
