"""Cinder for its users, and a consumer's use of an attachment: through NBD, as a machine would."""

import contextlib
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from cinderclient import client as cinder_client
from keystoneauth1 import session
from keystoneauth1.identity import v3

from sluice_aio.base.processes import ProcessId
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import DOMAIN

#: Seconds in which an operation of Cinder ends.
LIMIT = 60
MIB = 1 << 20
GIB = 1 << 30
#: The connector of another machine.
ELSEWHERE = {"host": "elsewhere", "ip": "192.0.2.1"}
HERE = {"host": socket.gethostname(), "ip": "127.0.0.1"}


def login(layout, user):
    """python-cinderclient as ``user``."""
    if user == seed.ADMIN:
        password, project = seed.password(layout, user), user
    else:
        password, project, _ = seed.PEOPLE[user]
    auth = v3.Password(
        auth_url=layout.keystone_url,
        username=user,
        password=password,
        project_name=project,
        user_domain_id=DOMAIN,
        project_domain_id=DOMAIN,
    )
    return cinder_client.Client("3.71", session=session.Session(auth=auth, timeout=LIMIT))


def wait_for(manager, resource, *statuses):
    """The resource when its status is one of ``statuses``."""
    deadline = time.monotonic() + LIMIT
    while (found := manager.get(resource.id)).status not in statuses:
        unexpected = found.status.startswith("error") and not any(one.startswith("error") for one in statuses)
        assert not unexpected, (found.status, found.to_dict())
        assert time.monotonic() < deadline, found.to_dict()
        time.sleep(0.1)
    return found


def wait_gone(manager, resource):
    """Return when the resource is deleted."""
    deadline = time.monotonic() + LIMIT
    while any(one.id == resource.id for one in manager.list()):
        assert time.monotonic() < deadline, manager.get(resource.id).to_dict()
        time.sleep(0.1)


def attach(cinder, volume, connector=HERE):
    """A completed attachment."""
    made = cinder.attachments.create(volume.id, dict(connector))
    found = cinder.attachments.show(made["id"])
    cinder.attachments.complete(found)
    return found


def detach(cinder, volume, attachment):
    """Delete an attachment."""
    cinder.attachments.delete(attachment.id)
    wait_for(cinder.volumes, volume, "available", "deleting")


@contextlib.contextmanager
def reachable_uri(connection):
    """The URI with which libnbd's programs connect, the key in a file of its own."""
    uri = connection["uri"]
    if "auth_password" not in connection:
        yield uri
        return
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "psk")
        key.touch(mode=0o600)
        key.write_text(f"{connection['auth_username']}:{connection['auth_password']}\n")
        yield f"{uri}?tls-psk-file={key}"


def run(*command):
    """Run a program of libnbd; return its output."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT).stdout


def size(connection):
    """Bytes of the export as a new connection sees it."""
    with reachable_uri(connection) as uri:
        return int(run("nbdinfo", "--size", uri))


def write(connection, content):
    """Write ``content`` through the export, from its beginning."""
    with reachable_uri(connection) as uri, tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        run("nbdcopy", "--flush", file.name, uri)


def read(connection, length):
    """The first bytes of the export."""
    with reachable_uri(connection) as uri, tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "bytes")
        run("nbdcopy", uri, str(target))  # unallocated ranges take no time
        with target.open("rb") as file:
            return file.read(length)


def export_process(layout, volume):
    """The export's nbdkit, None when there is none."""
    try:
        pid = int((layout.run / "nbd" / f"{volume.id}.pid").read_text())
    except (FileNotFoundError, ValueError):
        return None
    found = ProcessId.find(pid)
    return found if found is not None and found.alive() else None
