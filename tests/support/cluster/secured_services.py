"""Redis and RabbitMQ as a cloud runs them: behind TLS and a password, and Redis watched by a Sentinel."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Final

from tests.support.cluster.certificates import Authority

from sluice_aio.base.backing_servers import RabbitServer, RedisServer
from sluice_aio.base.ports import HOST, probe

_REPLIES: Final = (b"+PONG", b"-NOAUTH", b"-DENIED")
#: The name of the master in the tests' Sentinel.
MASTER: Final = "mymaster"


class SecureRedis(RedisServer):
    """Redis that only speaks TLS, with clients' certificates, and a password."""

    def __init__(
        self, port: int, folder: str | Path, authority: Authority, password: str = "", tied: bool = False
    ) -> None:
        super().__init__(port, folder, tied)
        self.password = password
        self._authority = authority
        self._own = authority.issue(f"redis-{port}", HOST)

    @property
    def url(self) -> str:
        login = f":{self.password}@" if self.password else ""
        return f"rediss://{login}{HOST}:{self.port}/0{self.options}"

    @property
    def options(self) -> str:
        """The clients' additions to the URL."""
        own = self._own  # its certificate is also a valid client's
        return f"?ssl_ca_certs={self._authority.ca}&ssl_certfile={own.certificate}&ssl_keyfile={own.key}"

    def argv(self) -> list[str]:
        settings = {
            "port": "0",
            "tls-port": str(self.port),
            "tls-ca-cert-file": str(self._authority.ca),
            "tls-cert-file": str(self._own.certificate),
            "tls-key-file": str(self._own.key),
            "tls-auth-clients": "yes",
        }
        # the last value holds
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return [*super().argv(), *words, *(["--requirepass", self.password] if self.password else [])]

    def answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self._authority.ca))
        context.load_cert_chain(self._own.certificate, self._own.key)
        try:
            with (
                socket.create_connection((HOST, self.port), 1.0) as plain,
                context.wrap_socket(plain, server_hostname=HOST) as connection,
            ):
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(_REPLIES)
        except OSError:
            return False


class WatchedRedis(RedisServer):
    """Redis with a password, one of two that a Sentinel watches; ``master`` is the port to follow, 0 for none."""

    def __init__(self, port: int, folder: str | Path, password: str, master: int = 0, tied: bool = False) -> None:
        super().__init__(port, folder, tied)
        self.password = password
        self._master = master

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def argv(self) -> list[str]:
        words = ["--requirepass", self.password, "--masterauth", self.password, "--repl-diskless-sync-delay", "0"]
        return [*super().argv(), *words, *(["--replicaof", f"{HOST} {self._master}"] if self._master else [])]

    def answers(self) -> bool:
        return probe(self.port, b"PING\r\n").startswith(_REPLIES)


class Sentinel(RedisServer):
    """One Sentinel that watches a Redis with a password and decides alone; itself behind ``own_password``."""

    name = "sentinel"

    def __init__(
        self, port: int, folder: str | Path, master: WatchedRedis, own_password: str = "", tied: bool = False
    ) -> None:
        super().__init__(port, folder, tied)
        self._watched = master
        self._own_password = own_password

    @property
    def url(self) -> str:
        login = f"?sentinel_password={self._own_password}" if self._own_password else ""
        return f"redis+sentinel://:{self._watched.password}@{HOST}:{self.port}/{MASTER}/0{login}"

    def argv(self) -> list[str]:
        return ["redis-server", str(self.folder / "sentinel.conf"), "--sentinel"]

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [
            f"port {self.port}",
            f"bind {HOST}",
            f"dir {self.folder}",
            f"sentinel monitor {MASTER} {HOST} {self._watched.port} 1",
            f"sentinel auth-pass {MASTER} {self._watched.password}",
            f"sentinel down-after-milliseconds {MASTER} 3000",
            f"sentinel failover-timeout {MASTER} 3000",
        ]
        if self._own_password:
            lines.append(f"requirepass {self._own_password}")
        settings = self.folder / "sentinel.conf"  # Sentinel writes its state into it
        if not settings.exists():
            settings.touch(0o600)
            settings.write_text("\n".join(lines) + "\n")
        super().start()

    def answers(self) -> bool:
        return probe(self.port, b"PING\r\n").startswith(_REPLIES)


class SecureRabbit(RabbitServer):
    """RabbitMQ that also serves TLS at ``tls_port``, to clients with a certificate."""

    def __init__(
        self,
        ports: tuple[int, int, int],
        tls_port: int,
        folder: str | Path,
        authority: Authority,
        tied: bool = False,
    ) -> None:
        """
        :param ports: of the broker, of Erlang's distribution, and of epmd
        """
        super().__init__(*ports, folder, tied)
        self.tls_port = tls_port
        self._authority = authority
        self._own = authority.issue(f"rabbit-{tls_port}", HOST, "localhost")

    @property
    def secure_url(self) -> str:
        """The URL for clients over TLS."""
        return f"amqps://guest:guest@{HOST}:{self.tls_port}/%2F{self.options}"

    @property
    def options(self) -> str:
        """The clients' additions to the URL."""
        own = self._own
        return f"?ssl_ca_certs={self._authority.ca}&ssl_certfile={own.certificate}&ssl_keyfile={own.key}"

    def settings(self) -> str:
        lines = (
            f"listeners.ssl.1 = {HOST}:{self.tls_port}",
            f"ssl_options.cacertfile = {self._authority.ca}",
            f"ssl_options.certfile = {self._own.certificate}",
            f"ssl_options.keyfile = {self._own.key}",
            "ssl_options.verify = verify_peer",
            "ssl_options.fail_if_no_peer_cert = true",
        )
        return super().settings() + "\n".join(lines) + "\n"
