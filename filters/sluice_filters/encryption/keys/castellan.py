"""Root secrets and passwords from a key manager (Barbican, Vault) through castellan.

The configuration is a file for oslo.config, readable by its owner only: castellan's own sections give the address of
the key manager and the login there, Sluice's section the secrets that are keys::

    [key_manager]
    backend = barbican
    auth_type = keystone_password
    auth_url = https://keystone.example/v3
    username = sluice
    ...
    [sluice]
    active = 2026
    keys = 2025:0f9c…-uuid,2026:77ab…-uuid

Secrets are fetched once and kept in memory; an added line is read within a second, like a change of a key file.  A
secret that cannot be fetched is a separate problem: the others remain usable, and it is requested again after a while.
A request that does not return is waited for in a separate thread, once; its late result is used at the next check.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from castellan import key_manager
from castellan.common import exception as castellan_errors
from castellan.common.utils import credential_factory
from keystoneauth1.exceptions import ClientException
from oslo_config import cfg

from sluice_filters.encryption.keys.key_file import SECRET_SIZE, read_private
from sluice_filters.encryption.keys.ring import KeySourceError, Ring, WatchedKeys, check_key_id

_GROUP: Final = "sluice"
_OPTIONS: Final = (
    cfg.StrOpt("active", default="", help="identifier of the key that new objects get"),
    cfg.DictOpt("keys", default={}, help="identifier:secret id at the key manager, with commas between"),
)
_ERRORS: Final = (castellan_errors.CastellanException, ClientException, cfg.Error, ImportError)
#: A part of errors that differs each time; without its removal, a repeated error would be logged again.
_PASSING: Final = re.compile(r" \(Request-ID: [^)]*\)|: HTTPS?ConnectionPool\(.*", re.DOTALL)

Manager = Any
Connect = Callable[[cfg.ConfigOpts], Manager]


class CastellanKeys(WatchedKeys):
    """The keys in a castellan configuration."""

    #: An unreachable key manager is not called at every request.
    retry: ClassVar[float] = 15.0
    #: Seconds to wait for the key manager: castellan's own sessions would wait without end.
    limit: ClassVar[float] = 5.0
    #: The expected kind of secret, for errors; and whether one of them must be the active one.
    expected: ClassVar[str] = "an AES key"
    has_active: ClassVar[bool] = True

    def __init__(
        self, path: str | Path, connect: Connect = key_manager.API, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(path, f"key manager of `{path}`", clock)
        self._connect = connect
        self._fetched: dict[tuple[str, str], bytes] = {}
        self._asking: threading.Thread | None = None

    def read(self) -> Ring:
        """Return the available keys of the configuration; secrets themselves never change."""
        read_private(self.path)  # it holds a password
        try:
            conf = _configuration(self.path)
            wanted = {(key_id, secret_id) for key_id, secret_id in conf.sluice["keys"].items()}
            active = str(conf.sluice.active)
            missing = sorted(wanted - self._fetched.keys())
            problems = self._fetch(conf, missing) if missing else []
        except _ERRORS as error:
            raise KeySourceError(_words(error)) from error
        for name in self._fetched.keys() - wanted:
            del self._fetched[name]
        secrets = {key_id: secret for (key_id, _), secret in self._fetched.copy().items()}
        if self.has_active and active not in secrets:
            problems.append(f"active key `{active}` is not among the keys")
        return Ring(active if active in secrets else "", secrets, "; ".join(problems))

    def _fetch(self, conf: cfg.ConfigOpts, names: list[tuple[str, str]]) -> list[str]:
        """Fetch secrets; return the problems of some of them."""
        problems: list[str] = []
        if self._asking is None or not self._asking.is_alive():
            self._asking = threading.Thread(target=self._ask, args=(conf, names, problems), daemon=True)
            self._asking.start()
            self._asking.join(self.limit)
        if self._asking.is_alive():  # its connection's keep-alive ends it at the latest
            problems.append(f"no answer within {self.limit:g} s")
        return problems

    def _ask(self, conf: cfg.ConfigOpts, names: list[tuple[str, str]], problems: list[str]) -> None:
        """Request secrets and store each when it arrives."""
        try:
            manager = self._connect(conf)
            context = credential_factory(conf)
        except _ERRORS as error:
            problems.append(_words(error))
            return
        for key_id, secret_id in names:
            try:
                self._fetched[key_id, secret_id] = self.decode(key_id, manager.get(context, secret_id))
            except KeySourceError as error:
                problems.append(str(error))
            except _ERRORS as error:
                problems.append(f"key `{key_id}`: {_words(error)}")
            except ValueError:  # raised by Barbican's client, and when a secret that is no symmetric key is decoded
                problems.append(f"key `{key_id}`: expected the id of a secret that is {self.expected}")

    def decode(self, key_id: str, secret: Any) -> bytes:
        """Return the bytes of a symmetric key from castellan.

        :raises KeySourceError: naming the identifier only
        """
        check_key_id(key_id)
        encoded = secret.get_encoded() if secret is not None else None
        if not isinstance(encoded, bytes) or len(encoded) != SECRET_SIZE:
            raise KeySourceError(f"key `{key_id}` is not of {SECRET_SIZE} bytes (an AES key of 256 bits)")
        return encoded


def _configuration(path: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf(args=[], project="sluice", default_config_files=[str(path)], default_config_dirs=[])
    conf.register_opts(_OPTIONS, group=_GROUP)
    return conf


def _words(error: Exception) -> str:
    # oslo.config's messages may quote a line of the file, and one of them holds a password
    if isinstance(error, cfg.Error):
        return type(error).__name__
    return f"{type(error).__name__}: {_PASSING.sub('', str(error))}"


class CastellanPasswords(CastellanKeys):
    """The passphrases that a castellan configuration lists as keys."""

    expected: ClassVar[str] = "a passphrase"
    has_active: ClassVar[bool] = False

    def decode(self, key_id: str, secret: Any) -> bytes:
        check_key_id(key_id)
        encoded = secret.get_encoded() if secret is not None else None
        if not isinstance(encoded, str | bytes) or not encoded:
            raise KeySourceError(f"secret `{key_id}` is no passphrase")
        return encoded.encode() if isinstance(encoded, str) else encoded
