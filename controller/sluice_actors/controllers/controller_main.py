"""The process of one global controller: ``python -I -m sluice_actors.controllers.controller_main``, a child of an
actor host.

Its standard input carries frames (``sluice_actors.controllers.ipc``): first the code, verified by the host, with its
limits; then one observation after the other.  The process answers each with one frame on its original standard output;
output that the code prints goes to standard error, which the host reads.

A thread reads the input, so that the process notices its end while the code computes.  When the host has ended, this
process ends too, and kills all processes that the code may have started.
"""

from __future__ import annotations

import os
import queue
import resource
import signal
import threading
from collections.abc import Mapping
from itertools import islice
from typing import Any, BinaryIO, Final

from sluice_actors.controllers import ipc
from sluice_code.loader import describe_error, load_class
from sluice_core.control import Assign, Controller, ControllerInfo, Observation
from sluice_core.errors import SluiceError
from sluice_core.messages.bandwidth import MOST_RATES, Rate

#: A longer answer is a mistake of the controller.
MOST_ASSIGNS: Final = 10_000
_LONGEST_REASON: Final = 500

Frames = queue.SimpleQueue[dict[str, Any]]


def main() -> None:
    """Serve until the host closes the pipe."""
    answers, questions = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # output of the code must not be read as an answer
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the code must not read the questions
    os.close(nothing)
    asked: Frames = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions, asked), daemon=True).start()
    controller: Controller | None = None
    while True:
        frame = asked.get()
        try:
            if controller is None:
                controller, said = _load(frame)
            else:
                said = _answer(controller, Observation.decode(frame["observation"]))
            packed = ipc.pack(said)
        except SluiceError as error:
            packed = ipc.pack({"error": str(error)[:_LONGEST_REASON]})
        answers.write(packed)
        answers.flush()


def _listen(questions: BinaryIO, asked: Frames) -> None:
    try:
        while True:
            head = questions.read(ipc.HEAD_SIZE)
            if len(head) < ipc.HEAD_SIZE:
                break
            asked.put(ipc.unpack(questions.read(ipc.length(head))))
    finally:
        _end()


def _end() -> None:
    """End this process and all processes that it started, whatever the other thread does."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def _load(frame: Mapping[str, Any]) -> tuple[Controller, dict[str, Any]]:
    limit(frame["memory"])
    controller_class: type[Controller] = load_class(frame["code"], frame["sha256"], Controller, frame["main"])
    info = getattr(controller_class, "info", None)
    if not isinstance(info, ControllerInfo):
        raise SluiceError(f"class `{controller_class.__name__}` has no `info` that is a ControllerInfo")
    try:
        return controller_class(), {"ready": True}
    except (Exception, SystemExit) as error:  # uploaded code may raise anything
        raise SluiceError(f"its instance cannot be created: {describe_error(error)}") from error


def _answer(controller: Controller, observation: Observation) -> dict[str, Any]:
    try:
        answers = list(islice(controller.compute_assignments(observation), MOST_ASSIGNS + MOST_RATES + 1))
    except (Exception, SystemExit) as error:  # uploaded code may raise anything
        raise SluiceError(describe_error(error)) from error
    odd = next((one for one in answers if not isinstance(one, Assign | Rate)), None)
    if odd is not None:
        raise SluiceError(f"it answers with a `{type(odd).__name__}`, expected an Assign or a Rate")
    assigns = [one.to_data() for one in answers if isinstance(one, Assign)]
    rates = [tuple(one) for one in answers if isinstance(one, Rate)]
    for most, rows, what in ((MOST_ASSIGNS, assigns, "assignments"), (MOST_RATES, rates, "rates")):
        if len(rows) > most:
            raise SluiceError(f"it answers with more than {most} {what}")
    return {"assigns": assigns, "rates": rates}


def limit(memory: int) -> None:
    """Set limits to the resources of the process; hard limits that are lower already stay."""
    for what, wanted in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(what, (most, most))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


if __name__ == "__main__":
    main()
