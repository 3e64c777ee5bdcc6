"""Errors of python-cinderclient and keystoneauth as ours.

A fault of the network, of Keystone or of Cinder itself is a :class:`PeerError`, after which the change may have
happened; a refusal is a :class:`CallerError` with Cinder's own reason, and its status.  No token and no connection is
in a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cinderclient import exceptions
from keystoneauth1 import exceptions as ksa

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound, PeerError


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Turn the errors of both libraries into ours.

    :param what: what was tried, for messages: ``creating the volume``
    :raises CallerError: when Cinder refuses
    :raises PeerError: when Cinder or Keystone is away, or fails
    """
    try:
        yield
    except exceptions.NotFound as error:
        raise NotFound(f"{what}: {error.message}") from error
    except (exceptions.Forbidden, exceptions.Unauthorized) as error:
        raise Forbidden(f"{what}: cinder does not let you: {error.message}") from error
    except exceptions.ClientException as error:
        if error.code in (409, 413):  # 413: a quota
            raise Conflict(f"{what}: {error.message}") from error
        if 400 <= error.code < 500:
            raise CallerError(f"{what}: {error.message}") from error
        raise PeerError(f"{what}: cinder fails with {error.code}: {error.message}") from error
    except (ksa.Unauthorized, ksa.Forbidden) as error:
        raise PeerError(f"{what}: keystone does not let our service user in") from error
    except ksa.ClientException as error:
        raise PeerError(f"{what}: cinder or keystone cannot be asked: {type(error).__name__}") from error
