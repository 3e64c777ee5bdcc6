"""An actor host's side of a controller's process (``sluice_actors.controllers.controller_main``).

Nothing here blocks the event loop, whatever the process does: questions have a time limit, answers a maximum length,
and its output is read as it arrives, of which a limited number of lines a minute is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sluice_actors.controllers import ipc
from sluice_core.control import Assign, Observation
from sluice_core.errors import DecodeError, SluiceError
from sluice_core.messages.bandwidth import Rate

log = logging.getLogger(__name__)

_MODULE: Final = "sluice_actors.controllers.controller_main"
_LOAD_LIMIT: Final = 30.0
#: Limits of its logged output: lines a minute, and characters of each.
_LINES: Final = 60
_WIDEST: Final = 200


class ControllerError(SluiceError):
    """The controller gave no valid answer; its assignments in force stay."""


class ControllerEnded(ControllerError):
    """The process is not usable any more: it ended, did not answer in time, or sent an invalid answer."""


@dataclass(frozen=True, slots=True)
class ControllerCode:
    """The code of a process: ``code`` are verified bytes; ``memory`` is its limit in bytes."""

    name: str
    revision: int
    main: str
    sha256: str
    code: bytes
    memory: int


class ControllerAnswer(NamedTuple):
    """One answer of a controller, not checked yet."""

    assigns: list[Assign]
    rates: tuple[Rate, ...] = ()


class ControllerProcess:
    """One process of a controller; :func:`start_process` creates it."""

    def __init__(self, code: ControllerCode, process: asyncio.subprocess.Process) -> None:
        self.revision = code.revision
        self._name = code.name
        self._process = process
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def observe(self, observation: Observation, seconds: float) -> ControllerAnswer:
        """Return the assignments that the controller wants to be in force now.

        :raises ControllerError: when it raised an exception, or :class:`ControllerEnded`, after which it must be closed
        """
        said = await self.request({"observation": observation.encode()}, seconds)
        try:
            rates = tuple(Rate(*row) for row in said["rates"])
            return ControllerAnswer([Assign.from_data(one) for one in said["assigns"]], rates)
        except (DecodeError, KeyError, TypeError, AttributeError) as error:
            raise ControllerEnded(f"its process answered with something else than assignments: {error!r}") from error

    async def request(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send one question and return its answer.

        :raises ControllerError: like :meth:`observe`
        """
        try:
            async with asyncio.timeout(seconds):
                said = await self._exchange(ipc.pack(question))
        except TimeoutError as error:
            raise ControllerEnded(f"it did not answer within {seconds:g} seconds") from error
        except DecodeError as error:
            raise ControllerEnded(f"its process sent an invalid answer: {error}") from error
        except (OSError, EOFError) as error:
            raise ControllerEnded(await self._how_it_ended()) from error
        if "error" in said:
            raise ControllerError(str(said["error"]))
        return said

    async def close(self) -> None:
        """End the process, and all processes that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._listening.cancel()
        await asyncio.wait((self._listening,))
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def _exchange(self, frame: bytes) -> dict[str, Any]:
        writer, reader = self._process.stdin, self._process.stdout
        assert writer is not None
        assert reader is not None
        writer.write(frame)
        await writer.drain()
        size = ipc.length(await reader.readexactly(ipc.HEAD_SIZE))
        return ipc.unpack(await reader.readexactly(size))

    async def _how_it_ended(self) -> str:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # it may only have closed its pipes
        code = await self._process.wait()
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended, with status {code}"

    async def _listen(self) -> None:
        """Log the output of the process, within limits."""
        assert self._process.stderr is not None
        began, lines = time.monotonic(), 0
        while piece := await self._process.stderr.read(4096):
            now = time.monotonic()
            if now - began >= 60:
                began, lines = now, 0
            for line in piece.decode(errors="replace").splitlines():
                lines += 1
                if lines <= _LINES:
                    shown = "".join(sign if sign.isprintable() else " " for sign in line[:_WIDEST])
                    log.info("controller `%s` prints: %s", self._name, shown)
                elif lines == _LINES + 1:
                    log.warning("controller `%s` prints more than %d lines a minute", self._name, _LINES)


async def start_process(code: ControllerCode) -> ControllerProcess:
    """Start a process and load ``code`` in it.

    :raises ControllerError: when it cannot be loaded
    """
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-m", _MODULE,
            stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", start_new_session=True,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except OSError as error:
        raise ControllerError(f"no process can be started for it: {error}") from error
    child = ControllerProcess(code, process)
    said = {"main": code.main, "sha256": code.sha256, "code": code.code, "memory": code.memory}
    try:
        await child.request(said, _LOAD_LIMIT)
    except BaseException:
        await child.close()
        raise
    return child
