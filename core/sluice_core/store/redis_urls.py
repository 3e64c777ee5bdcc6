"""URLs of Redis, and clients for them: one server, one behind TLS, a Unix socket, or the master of Sentinels.

::

    redis://[[user]:password@]host[:port][/db]
    rediss://…?ssl_ca_certs=FILE                           over TLS, see ``sluice_core.connections.urls``
    unix://[[user]:password@]/path/to/redis.sock[?db=N]
    redis+sentinel://[[user]:password@]host[:port],host[:port],…/master[/db]
    rediss+sentinel://…                                    over TLS to Sentinels and Redis alike

With Sentinels, every new connection requests the master from them.  A connection to a demoted master does not stay in
use: Sentinel closes a demoted server's connections, and where one remains, its first write fails and ends it.
``sentinel_username`` and ``sentinel_password`` log in at the Sentinels, user and password before the ``@`` at Redis.

This module does not repeat attempts.  A caller receives a fault after at most the time-out (plus a second for each
unreachable Sentinel) and decides.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.backoff
import redis.exceptions
import redis.retry
import redis.sentinel

from sluice_core.connections.urls import TLS_OPTIONS, check_hostname, parse_url, whole_number
from sluice_core.errors import PeerError
from sluice_core.options import OptionError
from sluice_core.store.blocking_connection import BlockingConnection

FORMS: Final = "redis://[user:password@]host:port/db, rediss://…, unix:///path?db=N or redis+sentinel://host:port,host:port/master/db"
_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_SCHEMES: Final = {
    "redis": _PORT,
    "rediss": _PORT,
    "unix": 0,
    "redis+sentinel": _SENTINEL_PORT,
    "rediss+sentinel": _SENTINEL_PORT,
}
_OPTIONS: Final = ("db", "username", "password", "client_name", "sentinel_username", "sentinel_password")
#: Seconds that one Sentinel may take to answer.
_SENTINEL_TIMEOUT: Final = 1.0


class RedisAddress:
    """The address of Redis.

    :raises OptionError: naming the forms, when ``url`` has none of them
    """

    def __init__(self, url: str) -> None:
        link = parse_url(url, _SCHEMES, _OPTIONS, FORMS)
        path = link.path
        #: The name of the master in the Sentinels; empty without Sentinels.
        self.master = ""
        if link.scheme.endswith("+sentinel"):
            self.master, _, path = link.path.partition("/")
            if not self.master:
                raise OptionError(f"not a URL: the master's name is missing, expected {FORMS}")
        elif len(link.hosts) > 1:
            raise OptionError(f"not a URL: several hosts need Sentinels, expected {FORMS}")
        self.secure = link.scheme.startswith("rediss")
        if not self.secure and any(name in link.options for name in TLS_OPTIONS):
            raise OptionError("not a URL: options of TLS need `rediss://` or `rediss+sentinel://`")
        check_hostname(link.options)
        self._link = link
        self._db = link.options.get("db", path if link.hosts else "") or "0"
        whole_number(self._db, "the database of the URL")

    def __str__(self) -> str:
        """Hosts, ports and the master's name, for messages."""
        return f"{self._link.place}/{self.master}" if self.master else self._link.place

    __repr__ = __str__

    def client(self, timeout: float) -> redis.Redis:
        """Return a client for threads; it does not connect yet."""
        made: redis.Redis = self._client(redis, redis.retry.Retry, _Sentinels, timeout)
        return made

    def async_client(self, timeout: float) -> redis.asyncio.Redis:
        """Return a client for asyncio; it does not connect yet."""
        made: redis.asyncio.Redis = self._client(redis.asyncio, redis.asyncio.retry.Retry, _AsyncSentinels, timeout)
        return made

    def _client(self, module: Any, retry: Any, sentinels: Any, timeout: float) -> Any:
        never = {"retry": retry(redis.backoff.NoBackoff(), 0)}
        settings = {**self._settings(timeout), **never}
        if not self.master:
            pool = module.ConnectionPool(connection_class=self._class(module.connection), **settings)
            return module.Redis.from_pool(pool)
        hosts = [(host.name, host.port) for host in self._link.hosts]
        manager = sentinels(hosts, sentinel_kwargs={**self._sentinel_settings(timeout), **never})
        return manager.master_for(self.master, ssl=self.secure, **settings)

    async def blocking_connection(self, client: redis.asyncio.Redis, timeout: float) -> BlockingConnection:
        """Return a connection for blocking reads to the address to which ``client`` is connected.

        :raises OSError, redis.exceptions.RedisError: when that fails
        """
        pool = client.connection_pool
        address = dict(pool.connection_kwargs)
        if isinstance(pool, redis.asyncio.sentinel.SentinelConnectionPool):
            address["host"], address["port"] = await pool.get_master_address()  # type: ignore[no-untyped-call]
        connection = await BlockingConnection.connect(address, self._tls(), timeout)
        if self.master:
            try:
                role = await connection.execute((("ROLE",),), timeout)
                if role[0][0] != b"master":
                    raise redis.exceptions.ConnectionError("no longer the master")
            except BaseException:
                connection.close()
                raise
        return connection

    def close(self, client: redis.Redis) -> None:
        """Close all connections of ``client``, those to Sentinels too."""
        client.close()
        for sentinel in _sentinels_of(client):
            sentinel.close()

    async def aclose(self, client: redis.asyncio.Redis) -> None:
        """As :meth:`close`, for asyncio."""
        await client.aclose()
        for sentinel in _sentinels_of(client):
            await sentinel.aclose()

    def peer_error(self, error: BaseException) -> PeerError:
        """Return the error for a fault of Redis or of the network."""
        return PeerError(f"redis at `{self}`: {str(error) or type(error).__name__}")

    def _tls(self) -> ssl.SSLContext | None:
        """The TLS context, read again for each connection, so that a renewed certificate is used."""
        if not self.secure:
            return None
        try:
            return self._link.tls()
        except OptionError as error:
            raise redis.exceptions.ConnectionError(str(error)) from error

    def _settings(self, timeout: float) -> dict[str, Any]:
        options = self._link.options
        wanted: dict[str, Any] = {
            **self._transport(timeout),
            "db": int(self._db),
            "username": options.get("username", self._link.user) or None,
            "password": options.get("password", self._link.password) or None,
            "decode_responses": False,
        }
        if "client_name" in options:
            wanted["client_name"] = options["client_name"]
        if not self._link.hosts:
            wanted["path"] = self._link.path
        elif not self.master:
            wanted["host"], wanted["port"] = self._link.hosts[0].name, self._link.hosts[0].port
        return wanted

    def _sentinel_settings(self, timeout: float) -> dict[str, Any]:
        options = self._link.options
        return {
            **self._transport(min(timeout, _SENTINEL_TIMEOUT)),
            "ssl": self.secure,
            "username": options.get("sentinel_username") or None,
            "password": options.get("sentinel_password") or None,
        }

    def _transport(self, timeout: float) -> dict[str, Any]:
        """Time-outs and TLS, the same on every connection."""
        transport: dict[str, Any] = {"protocol": 2, "socket_timeout": timeout, "socket_connect_timeout": timeout}
        if self.secure:
            files = {name: self._link.options[name] for name in TLS_OPTIONS[:3] if name in self._link.options}
            transport |= {
                "ssl_cert_reqs": "required",
                "ssl_check_hostname": check_hostname(self._link.options),
                **files,
            }
        if not self._link.hosts:
            del transport["socket_connect_timeout"]
        return transport

    def _class(self, module: Any) -> Any:
        if not self._link.hosts:
            return module.UnixDomainSocketConnection
        return module.SSLConnection if self.secure else module.Connection


class _Sentinels(redis.sentinel.Sentinel):
    def discover_master(self, service_name: str) -> Any:
        try:
            return super().discover_master(service_name)  # type: ignore[no-untyped-call]
        except redis.sentinel.MasterNotFoundError:
            raise _no_master(service_name) from None  # the original prints all settings, including passwords


class _AsyncSentinels(redis.asyncio.sentinel.Sentinel):
    async def discover_master(self, service_name: str) -> Any:
        try:
            return await super().discover_master(service_name)
        except redis.asyncio.sentinel.MasterNotFoundError:
            raise _no_master(service_name) from None


def _sentinels_of(client: Any) -> list[Any]:
    manager = getattr(client.connection_pool, "sentinel_manager", None)
    return [] if manager is None else list(manager.sentinels)


def _no_master(master: str) -> redis.exceptions.ConnectionError:
    return redis.exceptions.ConnectionError(f"no sentinel answers that knows a living master `{master}`")
