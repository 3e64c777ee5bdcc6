"""Who calls: Keystone says whose token it is, and what roles its user has.

Answers are cached for a while, so a token that was revoked may still be taken within that.  The section
``[keystone_authtoken]`` has the options that every service of OpenStack has there.
"""

from __future__ import annotations

import configparser
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from keystoneauth1 import exceptions as ksa
from keystoneauth1 import loading, plugin, session

from sluice_core.errors import CallerError, PeerError
from sluice_core.options import OptionError

SECTION: Final = "keystone_authtoken"
#: One of these is needed.
ROLES: Final = ("service", "admin")
#: Seconds for which an answer of Keystone's is believed, unless ``token_cache_time`` says otherwise.
_CACHED: Final = 60.0
_MOST: Final = 1000
#: Seconds that Keystone has to answer.
_TIMEOUT: Final = 10.0
_IDENTITY: Final = {"service_type": "identity", "interface": plugin.AUTH_INTERFACE, "version": (3, 0)}


class Unauthorized(CallerError):
    """Nobody knows who calls."""

    status = 401


class Forbidden(CallerError):
    """Who calls may not."""

    status = 403


class Session(Protocol):
    """As much of a keystoneauth session as is needed."""

    def get(self, url: str, **kwargs: Any) -> Any:
        """An answer of Keystone's."""


class TokenChecker:
    """Asks Keystone by ``keystone``, and believes it for ``cached`` seconds."""

    def __init__(self, keystone: Session, cached: float = _CACHED, now: Callable[[], float] = time.time) -> None:
        self._keystone = keystone
        self._cached = cached
        self._now = now
        self._lock = threading.Lock()
        #: Hash of a token → until when it is believed, and its roles.
        self._known: dict[bytes, tuple[float, frozenset[str]]] = {}

    def check(self, token: str) -> None:
        """Let the owner of ``token`` pass.

        :raises Unauthorized: when it is missing, or Keystone does not know it
        :raises Forbidden: when it has none of :data:`ROLES`
        :raises PeerError: when Keystone cannot be asked
        """
        if not token:
            raise Unauthorized("a token is needed in `X-Auth-Token`")
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        with self._lock:
            until, roles = self._known.get(digest, (0.0, frozenset()))
        if self._now() >= until:
            until, roles = self._ask(token)
            with self._lock:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[digest] = (min(until, self._now() + self._cached), roles)
        if not roles.intersection(ROLES):
            raise Forbidden(f"the user of this token has no role {' or '.join(f'`{one}`' for one in ROLES)}")

    def _ask(self, token: str) -> tuple[float, frozenset[str]]:
        """When the token ends, in unix seconds, and its roles."""
        try:
            answer = self._keystone.get(
                "/auth/tokens", endpoint_filter=_IDENTITY, headers={"X-Subject-Token": token}
            ).json()["token"]
            ends = datetime.fromisoformat(answer["expires_at"]).replace(tzinfo=UTC).timestamp()
            return ends, frozenset(str(one["name"]) for one in answer.get("roles", ()))
        except ksa.NotFound as error:
            raise Unauthorized("keystone does not know this token") from error
        except (ksa.Unauthorized, ksa.Forbidden) as error:
            raise PeerError("keystone does not let the konnector's user ask about tokens") from error
        except (ksa.ClientException, ValueError, KeyError, TypeError) as error:
            raise PeerError(f"keystone cannot be asked about a token: {type(error).__name__}") from error


def open_checker(path: Path) -> TokenChecker:
    """What asks Keystone as the section in the file at ``path`` says; nothing is asked yet.

    :raises OptionError: when the file has no such section, or lacks an option
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        section: Mapping[str, str] = parser[SECTION]
        cached = float(section.get("token_cache_time", _CACHED))
        loader: Any = loading.get_plugin_loader(section.get("auth_type", "password"))
        auth = loader.load_from_options_getter(lambda option: section.get(option.dest))
    except KeyError as error:
        raise OptionError(f"`{path}` has no section [{SECTION}], which the API over TLS needs") from error
    except (OSError, ValueError, configparser.Error, ksa.ClientException) as error:
        raise OptionError(f"{path} [{SECTION}]: {error}") from error
    verify: bool | str = section.get("insecure", "").lower() not in ("true", "1", "yes") and (
        section.get("cafile") or True
    )
    return TokenChecker(session.Session(auth=auth, verify=verify, timeout=_TIMEOUT), cached)
