"""Trials of uploaded native code: a child process loads the code before any other process does.

The API runs a trial before it accepts code; each agent runs one before it acknowledges code (with Swift's own
interpreter, as Swift's user).  The child is ``python -m <module of the kind>``.  It reads one :class:`Trial` (JSON)
from standard input, loads the code, checks it against the contract of its kind and answers with one :class:`Verdict`.
It has limits of time, memory and file sizes, and its output is discarded.  Code that ends the child or hangs it is
refused.

This module's own ``main`` tries controllers; ``sluice_filters.trial.trial`` and ``sluice_metrics.trial`` try the
others.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from sluice_code.code_store import BadUpload
from sluice_code.loader import load_class
from sluice_core.control import Controller, ControllerInfo, Observation
from sluice_core.describe import NATIVE, NBDKIT
from sluice_core.errors import DecodeError, PeerError, SluiceError
from sluice_core.messages.bandwidth import ALLOCATED_METHODS
from sluice_core.messages.base import Message
from sluice_core.messages.uploads import CONTROLLER_CODE, FILTER_CODE, METRIC_CODE, Revision

#: Kind of code → the module that tries it.
MODULES: Final[Mapping[str, str]] = {
    FILTER_CODE: "sluice_filters.trial.trial",
    METRIC_CODE: "sluice_metrics.trial",
    CONTROLLER_CODE: "sluice_code.native_trial",
}
#: The module that tries shared objects for nbdkit.
_OF_NBDKIT: Final = "sluice_block.uploaded.trial"
_TIME_LIMIT: Final = 30.0
_MEMORY: Final = 4 << 30
_ANSWER_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Trial(Message):
    """The code to be tried: ``keyword`` and ``main`` may be empty, then the code provides them.

    ``folder`` holds the code, each file called after its SHA-256.  ``earlier`` are revisions whose objects the new
    code must be able to read.  Code that does not describe itself is of the ``environment`` NBDKIT, and has its
    description in ``info``.
    """

    kind: str
    folder: str
    sha256: str
    keyword: str = ""
    main: str = ""
    earlier: tuple[Revision, ...] = ()
    environment: str = NATIVE
    info: Mapping[str, Any] = field(default_factory=dict)

    nested: ClassVar[Mapping[str, type[Message]]] = {"earlier": Revision}


@dataclass(frozen=True, slots=True)
class Verdict(Message):
    """``reason`` says why the code fails; empty when it can be used, and then ``main`` and ``info`` are its own."""

    reason: str = ""
    main: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs trials, and the user and group that it becomes (only root can); empty: those of this
    process.
    """

    python: str = ""
    user: str = ""
    group: str = ""


def trial_module(trial: Trial) -> str:
    """The module that tries this code."""
    return _OF_NBDKIT if trial.environment == NBDKIT else MODULES[trial.kind]


def try_code(trial: Trial, interpreter: Interpreter | None = None) -> Verdict:
    """Try code in a child process; return its verdict after at most :data:`_TIME_LIMIT` seconds.

    :raises PeerError: when no child process can be started, which is no verdict on the code
    """
    given = interpreter or Interpreter()
    command = [given.python or sys.executable, "-I", "-m", trial_module(trial)]
    become: dict[str, Any] = {}
    if given.user:
        become = {"user": given.user, "group": given.group or None, "extra_groups": ()}
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
            **become,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise PeerError(f"cannot start `{command[0]}` to try code: {error}") from error
    try:
        raw, _ = child.communicate(trial.encode(), timeout=_TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return Verdict(f"the code was not loaded within {_TIME_LIMIT:g} seconds")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # processes that the code started
        child.communicate()
    return _verdict(child.returncode, raw)


def _verdict(code: int, raw: bytes) -> Verdict:
    if raw and len(raw) <= _ANSWER_LIMIT:
        with contextlib.suppress(DecodeError):
            return Verdict.decode(raw)
    if code < 0:
        with contextlib.suppress(ValueError):
            return Verdict(f"the code ended the process that loaded it with {signal.Signals(-code).name}")
    return Verdict(f"the code ended the process that loaded it, with status {code}")


# -- in the child


def serve_trial(judge: Callable[[Trial, bytes], Verdict]) -> None:
    """Read a trial from standard input, run it, and write its verdict to standard output."""
    answers = os.dup(1)
    os.dup2(2, 1)  # output of the code is not an answer
    _limit()
    try:
        trial = Trial.decode(sys.stdin.buffer.read())
        code = Path(trial.folder, trial.sha256).read_bytes()
        said = judge(trial, code)
    except SluiceError as error:
        said = Verdict(str(error))
    except OSError as error:
        said = Verdict(f"the code cannot be read: {error.strerror}")
    with os.fdopen(answers, "wb") as out:
        out.write(said.encode())
    os._exit(0)  # skips exit handlers of the code


def _limit() -> None:
    """Lower the resource limits of this process; lower hard limits stay."""
    for what, wanted in (
        (resource.RLIMIT_CPU, int(_TIME_LIMIT)),
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(what, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _judge_controller(trial: Trial, code: bytes) -> Verdict:
    controller_class: type[Controller] = load_class(code, trial.sha256, Controller, trial.main)
    info = getattr(controller_class, "info", None)
    if not isinstance(info, ControllerInfo):
        raise BadUpload(f"class `{controller_class.__name__}` has no `info` that is a ControllerInfo")
    if trial.keyword and info.name != trial.keyword:
        raise BadUpload(f"the code calls itself `{info.name}`, expected `{trial.keyword}`")
    if not info.period >= 1:
        raise BadUpload(f"its period is `{info.period}`, expected at least 1 second")
    unknown = [method for method in info.allocates if method not in ALLOCATED_METHODS]
    if unknown:
        raise BadUpload(f"it allocates `{unknown[0]}`, expected {' or '.join(ALLOCATED_METHODS)}")
    try:
        list(controller_class().compute_assignments(Observation(0.0)))
    except Exception as error:
        raise BadUpload(f"it fails when nothing is known yet: {type(error).__name__}: {error}") from error
    told: dict[str, Any] = {"metrics": list(info.metrics), "period": info.period, "help": info.help}
    if info.bandwidth or info.allocates:
        told |= {"bandwidth": True, "allocates": list(info.allocates)}
    return Verdict("", controller_class.__name__, told)


if __name__ == "__main__":
    serve_trial(_judge_controller)
