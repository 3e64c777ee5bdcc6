"""``python keystone_program.py <folder> <port> [<host>]``: a whole Keystone in one process, for one machine.

Run by the Python of Keystone's own virtual environment, in which Sluice is not installed; so this file imports
nothing of Sluice.  In an empty folder it creates the data of Keystone (schema, keys, the administrator, roles, the
catalogue's first entry) and then restarts itself, because Keystone reads its options once per process.  The
administrator's password comes from the file ``admin.password`` in the folder.

One process with threads: Keystone's cache is in memory, and only coherent within a process.
"""

import contextlib
import os
import shutil
import socket
import socketserver
import sys
import threading
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

HOST = "127.0.0.1"
REGION = "RegionOne"
#: Names of projects, one a line, whose ids are these names; a service that creates a project chooses its id itself.
PROJECTS = "projects"
#: Exists when the folder is complete; holds the address in the catalogue.
READY = "made"
DATABASE = "keystone.db"
#: The tables of Keystone without rows, beside the packages of its virtual environment.
EMPTY = "empty-keystone-{version}.db"

CONFIG = """\
[DEFAULT]
use_stderr = true
[database]
connection = sqlite:///{folder}/keystone.db
[fernet_tokens]
key_repository = {folder}/fernet
[fernet_receipts]
key_repository = {folder}/fernet
[credential]
key_repository = {folder}/credential
[identity]
# for play: a hash that is quick to make
password_hash_rounds = 4
max_password_length = 72
[token]
# nobody logs in anew while a test runs
expiration = 86400
[cache]
enabled = true
backend = dogpile.cache.memory
"""


class ThreadingServer(socketserver.ThreadingMixIn, WSGIServer):
    """One thread per connection; none of them keeps the process alive."""

    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without resolving the own host name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]
        self.setup_environ()


class Handler(WSGIRequestHandler):
    """HTTP/1.0 with addresses instead of names in the log."""

    def address_string(self) -> str:
        """The address of the client."""
        return str(self.client_address[0])


def one_writer(application: WSGIApplication) -> WSGIApplication:
    """``application`` with requests that may write one after the other.

    SQLite refuses a transaction that has read and begins to write while another one writes (``database is locked``).
    """
    turn = threading.Lock()

    def call(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with contextlib.nullcontext() if environ["REQUEST_METHOD"] in ("GET", "HEAD") else turn:
            return application(environ, start_response)

    return call


def configure(folder: Path) -> str:
    """Write the configuration and let Keystone read it; its path."""
    path = folder / "keystone.conf"
    path.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    sys.argv = ["keystone"]  # otherwise Keystone reads this program's arguments as its own
    os.environ["OS_KEYSTONE_CONFIG_DIR"] = str(folder)
    return str(path)


def make(folder: Path, config: str, url: str) -> None:
    """Create schema, keys, the administrator and the roles."""
    import keystone.server  # type: ignore[import-not-found]
    from keystone.cmd.bootstrap import Bootstrapper  # type: ignore[import-not-found]
    from keystone.common import fernet_utils  # type: ignore[import-not-found]

    keystone.server.configure(config_files=[config])
    create_tables(folder / DATABASE)
    for name in ("fernet", "credential"):
        keys = fernet_utils.FernetUtils(str(folder / name), 3, "fernet_tokens")
        keys.create_key_directory()
        keys.initialize_key_repository()
    first = Bootstrapper()
    first.admin_username = first.project_name = first.admin_role_name = "admin"
    first.admin_password = (folder / "admin.password").read_text(encoding="ascii").strip()
    first.service_name, first.region_id, first.immutable_roles = "keystone", REGION, False
    first.public_url = first.internal_url = first.admin_url = url
    first.bootstrap()
    if (folder / PROJECTS).exists():
        make_projects((folder / PROJECTS).read_text(encoding="utf-8").split())
    (folder / READY).write_text(url, encoding="ascii")


def create_tables(database: Path) -> None:
    """Create or migrate the tables of ``database``.

    A new one is a copy of this virtual environment's empty database, since Keystone's migrations take seconds of a
    processor.  The first call in an environment migrates and keeps that copy.
    """
    empty = Path(sys.prefix) / EMPTY.format(version=metadata.version("keystone"))
    is_new = not database.exists()
    if is_new and empty.exists():
        shutil.copyfile(empty, database)
        return
    from keystone.common.sql import upgrades  # type: ignore[import-not-found]

    upgrades.offline_sync_database_to_version(None)
    if is_new:
        unfinished = empty.with_name(f"{empty.name}.{os.getpid()}")
        with contextlib.suppress(OSError):  # the environment may belong to another user
            shutil.copyfile(database, unfinished)
            unfinished.chmod(0o644)  # it holds no secret, and Keystone may run as another user
            unfinished.replace(empty)


def make_projects(names: Iterable[str]) -> None:
    """Create projects in the default domain, by the functions that Keystone's own API calls."""
    from keystone.common import provider_api

    for name in names:
        project = {"id": name, "name": name, "domain_id": "default", "enabled": True, "is_domain": False}
        provider_api.ProviderAPIs.resource_api.create_project(name, project)


def main(folder: Path, port: int, host: str = HOST) -> None:
    """Create the folder's content if necessary, then serve at ``host`` until a signal arrives."""
    arguments = [sys.executable, *sys.orig_argv[1:]]
    os.umask(0o077)
    config = configure(folder)
    url = f"http://{host}:{port}/v3"
    ready = folder / READY
    if not ready.exists():
        (folder / DATABASE).unlink(missing_ok=True)  # left by a first start that was interrupted
    if not ready.exists() or ready.read_text(encoding="ascii") != url:
        make(folder, config, url)
        os.execv(sys.executable, arguments)  # noqa: S606 - this program again
    from keystone.server.flask import core  # type: ignore[import-not-found]

    application = core.initialize_application(name="public", config_files=[config])
    with make_server(host, port, one_writer(application), ThreadingServer, Handler) as server:
        announce()
        server.serve_forever()


def announce() -> None:
    """Tell a service manager that connections are accepted: sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"READY=1", address)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]), *sys.argv[3:])
