"""The environment `process`: uploaded Python in a jailed worker of its tenant, seen from the host.

Theory of operation.  A supervisor (``supervisor``), one per node, keeps workers of its tenants
warm and gives each tenant a listening socket in its folder.  A stream connects there, hands over its
code as sealed memory, and sends its bytes; a free worker accepts it.  No third process takes part, so a warm stream
costs two context switches.  The supervisor is called only when the socket is missing, or no worker answers.

``feed`` waits for space, not for output: the worker computes while the host reads on.  Hosts may use green threads: all
descriptors are non-blocking ``_socket`` ones, which eventlet does not patch, and ``waiting`` waits.
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from sluice_code.code_store import BadUpload, CodeStore
from sluice_core.describe import PROCESS
from sluice_core.errors import PeerError, SluiceError
from sluice_core.messages.uploads import Upload
from sluice_filters.api import FilterError, Hint
from sluice_sandbox import waiting
from sluice_sandbox.api import SandboxTeam
from sluice_sandbox.limits import Limits, SandboxFault, Session, Step
from sluice_sandbox.process import wire

CONTROL: Final = "control"
#: A worker that has sent nothing for this time is busy with another stream.
BUSY: Final = 0.02
#: Seconds for the start of a tenant's first worker.
COLD: Final = 15.0
_FULL: Final = 0.01
_BUFFER: Final = 1024 * 1024
#: Exceptions of decoding an invalid message.
_NONSENSE: Final = (ValueError, KeyError, TypeError, OverflowError, RecursionError, AttributeError)
#: Linux allows 107 bytes; some libraries truncate longer paths silently.
_MAX_PATH: Final = 107


def tenant_socket(folder: Path, tenant: str) -> Path:
    """The listening socket of the workers of ``tenant``; names of tenants may be long and have any characters."""
    return folder / f"t-{hashlib.sha256(tenant.encode()).hexdigest()[:24]}"


class _Socket(_socket.socket):
    """Closes itself when dropped: hosts end a request by dropping its streams."""

    def __del__(self) -> None:
        self.close()


def connect(path: Path) -> _Socket:
    """Connect a non-blocking stream to the listener at ``path``.

    :raises OSError: as ``connect`` does
    """
    connection = _Socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
    connection.connect(str(path))
    return connection


class SupervisorClient:
    """The requests of a host to the node's supervisor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if len(str(folder / f"t-{24 * '0'}")) > _MAX_PATH:
            raise PeerError(f"folder `{folder}` is too long for unix sockets, expected {_MAX_PATH - 27} bytes at most")

    def request(self, op: str, tenant: str, seconds: float = COLD) -> None:
        """Request from the supervisor to ``start`` the workers of ``tenant``, or one ``more``.

        :raises PeerError: when no supervisor answers, or it refuses
        """
        try:
            line = connect(self.folder / CONTROL)
            line.send(json.dumps({"op": op, "tenant": tenant}).encode() + b"\n")
            answer = b""
            while seconds and not answer.endswith(b"\n"):
                if not waiting.wait([line.fileno()], [], seconds):
                    raise PeerError(f"the sandbox supervisor did not answer for {seconds:.0f} s")
                piece = line.recv(4096)
                if not piece:
                    raise PeerError("the sandbox supervisor hung up")
                answer += piece
        except OSError as error:
            raise PeerError(f"no sandbox supervisor at `{self.folder}`: {error.strerror}") from error
        reason = json.loads(answer)["error"] if seconds else ""
        if reason:
            raise PeerError(f"sandbox of tenant `{tenant}`: {reason}")


class ProcessTeam(SandboxTeam):
    """Python filters in jailed workers, through the supervisor at ``folder``."""

    environment: ClassVar[str] = PROCESS

    def __init__(self, store: CodeStore, folder: Path, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.supervisor_client = SupervisorClient(folder)
        self._store = store
        #: Sealed copies of verified code, one descriptor each, for the lifetime of this process.
        self._sealed: dict[str, int] = {}

    def admit(self, upload: Upload, code: bytes) -> None:
        if upload.language.lower() != "python":
            raise BadUpload(f"language `{upload.language}` in environment `process`, expected `python`")
        if upload.dependencies:
            raise BadUpload("environment `process` takes one file; packages come with its jail")
        if not upload.main.isidentifier():
            raise BadUpload(f"main class `{upload.main}` is no name of a Python class")
        try:
            compile(code, f"<{upload.keyword}>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise BadUpload(f"code of filter `{upload.keyword}` does not compile: {error}") from error

    def session(self, steps: Sequence[Step], hint: Hint) -> Session:
        if len(steps) > wire.MAX_STEPS:
            raise FilterError(f"{len(steps)} isolated filters in a row, expected at most {wire.MAX_STEPS}")
        return ProcessSession(self, steps, hint.account)

    def code(self, sha256: str) -> int:
        """A descriptor of the code, verified and sealed against changes."""
        known = self._sealed.get(sha256)
        if known is not None:
            return known
        data = self._store.read(sha256)
        descriptor = os.memfd_create("code", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        self._sealed[sha256] = descriptor
        return descriptor


class ProcessSession(Session):
    """One stream through a tenant's worker."""

    def __init__(self, team: ProcessTeam, steps: Sequence[Step], tenant: str) -> None:
        self._team = team
        self._names = [one.keyword for one in steps]
        self._tenant = tenant
        self._frames = wire.FrameParser()
        self._counts: list[tuple[int, int]] | None = None
        self._answered = False
        self._connection = self._start(steps)

    def feed(self, data: bytes) -> bytes:
        view = memoryview(data)
        out: list[bytes] = []
        while view:
            try:
                view = view[self._connection.send(view) :]
            except BlockingIOError:
                self._await(out, writing=True)
            except OSError:
                # its remaining messages have the reason
                self._drain(out)
                raise self._died() from None
        self._take(out)
        return b"".join(out)

    def finish(self) -> bytes:
        out: list[bytes] = []
        try:
            self._connection.shutdown(_socket.SHUT_WR)
        except OSError:
            self._drain(out)
            raise self._died() from None
        while self._counts is None:
            self._await(out, writing=False)
        self._connection.close()
        return out[0] if len(out) == 1 else b"".join(out)

    def counts(self) -> Sequence[tuple[int, int]]:
        return self._counts or []

    def _start(self, steps: Sequence[Step]) -> _Socket:
        try:
            codes = [self._team.code(one.code) for one in steps]
            connection = self._connect()
        except SluiceError as error:
            raise FilterError(f"filter {self._title()} cannot run: {error}") from error
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, _BUFFER)
        head = wire.encode_head([_described(one) for one in steps])
        socket.send_fds(connection, [head], codes)  # type: ignore[arg-type]  # it is one without Python's wrapper
        return connection

    def _connect(self) -> _Socket:
        supervised = self._team.supervisor_client
        path = tenant_socket(supervised.folder, self._tenant)
        until = time.monotonic() + self._team.limits.patience
        while time.monotonic() < until:
            try:
                return connect(path)
            except BlockingIOError:
                # the queue is full, and the kernel does not notify when it has space
                waiting.pause(_FULL)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                    raise PeerError(f"socket `{path}`: {error.strerror}") from error
                supervised.request("start", self._tenant)
        raise PeerError(f"sandbox of tenant `{self._tenant}` is overloaded")

    def _await(self, out: list[bytes], writing: bool) -> None:
        """Wait until data can be moved, and read what arrived."""
        readers = [self._connection.fileno()]
        writers = readers if writing else []
        if not self._answered and not waiting.wait(readers, writers, BUSY):
            self._answered = True
            with suppress(PeerError):  # the existing worker serves all streams, only later
                self._team.supervisor_client.request("more", self._tenant, seconds=0)
        began = time.monotonic()
        if not waiting.wait(readers, writers, self._team.limits.patience):
            raise SandboxFault(f"filter {self._title()} stood still for {time.monotonic() - began:.0f} s")
        self._take(out)

    def _take(self, out: list[bytes]) -> None:
        """Read everything that the worker has sent."""
        while self._counts is None:
            try:
                data = self._connection.recv(wire.CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                raise self._died()
            self._answered = True
            self._parse(data, out)
            if len(data) < wire.CHUNK:
                return

    def _drain(self, out: list[bytes]) -> None:
        """Read everything that a worker sent before it closed the connection."""
        while True:
            before = len(out)
            self._take(out)
            if len(out) == before:
                return

    def _parse(self, data: bytes, out: list[bytes]) -> None:
        try:
            for kind, piece in self._frames.feed(data):
                if kind == wire.DATA:
                    out.append(piece)
                elif kind == wire.END:
                    self._counts = [(int(taken), int(given)) for taken, given in json.loads(piece)["counts"]]
                    return
                else:
                    raise self._fault(json.loads(piece))
        except (wire.MalformedFrame, *_NONSENSE) as error:
            raise SandboxFault(f"the worker of filter {self._title()} answers nonsense") from error

    def _fault(self, word: Mapping[str, Any]) -> SandboxFault:
        """Return the fault in the host's words: a jail may send any text."""
        number, what = word.get("step"), str(word.get("what"))
        known = isinstance(number, int) and 0 <= number < len(self._names)
        name = f"`{self._names[number]}`" if known else self._title()  # type: ignore[index]
        told = wire.FAULTS.get(str(word.get("fault")), "failed")
        return SandboxFault(f"filter {name} {told.format(what=what[:40] if what.isidentifier() else 'an exception')}")

    def _died(self) -> SandboxFault:
        return SandboxFault(f"the worker of filter {self._title()} died")

    def _title(self) -> str:
        return " and ".join(f"`{one}`" for one in self._names)


def _described(step: Step) -> dict[str, Any]:
    return {"code": step.code, "main": step.main, "params": dict(step.params), "direction": step.direction}
