"""The identity of a request: a user of Keystone, or the administrator who holds the static token.

With ``auth = keystone`` the middleware of :mod:`sluice_controller.identity.keystone` runs before Django and puts
an :class:`Identity` into the request's environment, where no client can put one.  Headers are not read here.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from sluice_controller.config import KEYSTONE
from sluice_controller.identity.caller import ADMIN, AWAY, CHALLENGE, IDENTITY, Identity, known_token, token_matches
from sluice_core.errors import PeerError


class TokenAuthentication(BaseAuthentication):
    """``X-Auth-Token``: a token of Keystone, or that of ``token_file``."""

    def authenticate(self, request: Request) -> tuple[Identity, None] | None:
        """Called by REST framework for each request; None makes the permission answer 401.

        :raises PeerError: when Keystone does not answer, so that the token cannot be checked
        """
        identity = _of_keystone(request) if settings.SLUICE.auth == KEYSTONE else _of_file(request)
        return None if identity is None else (identity, None)

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401."""
        return str(request.META.get(CHALLENGE, 'X-Auth-Token realm="sluice"'))


def is_authenticated(request: HttpRequest) -> bool:
    """Whether the request has a valid identity; usable before REST framework has checked it, and never refuses."""
    if settings.SLUICE.auth == KEYSTONE:
        return isinstance(request.META.get(IDENTITY), Identity)
    given = request.headers.get("X-Auth-Token")
    return given is not None and token_matches(given, known_token(settings.SLUICE.token_file))


def _of_keystone(request: Request) -> Identity | None:
    identity = request.META.get(IDENTITY)
    if isinstance(identity, Identity):
        return identity
    if AWAY in request.META:
        raise PeerError(request.META[AWAY])
    if "X-Auth-Token" in request.headers:
        raise AuthenticationFailed("`X-Auth-Token` is not a valid token of Keystone, it may have expired")
    return None


def _of_file(request: Request) -> Identity | None:
    given = request.headers.get("X-Auth-Token")
    if given is None:
        return None
    if not token_matches(given, known_token(settings.SLUICE.token_file)):
        raise AuthenticationFailed("`X-Auth-Token` is not the admin token")
    return ADMIN
