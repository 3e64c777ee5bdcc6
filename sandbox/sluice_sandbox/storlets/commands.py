"""Commands of Storlets' SBus, from the host to a factory or a daemon in a container."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from time import monotonic
from typing import Any

from storlets.sbus.datagram import SBusFileDescriptor, build_datagram
from storlets.sbus.file_description import SBUS_FD_SERVICE_OUT

from sluice_sandbox.storlets import wire
from sluice_sandbox.waiting import pipe, read_now, wait


def send_datagram(path: str, datagram: Any) -> None:
    """Send a datagram to the listener at ``path``.

    :raises OSError: when no process listens there, or its queue is full
    """
    wire.send(
        path,
        wire.pack(datagram.serialized_metadata, datagram.serialized_cmd_params, datagram.num_fds),
        datagram.fds,
    )


def send_command(
    path: str, command: str, params: Mapping[str, Any] | None, answer_to: int, task: str | None = None
) -> None:
    """Send a command whose answer goes to the descriptor ``answer_to``.

    :raises OSError: when no process listens at ``path``, or its queue is full
    """
    service = SBusFileDescriptor(SBUS_FD_SERVICE_OUT, answer_to)
    send_datagram(path, build_datagram(command, [service], None if params is None else dict(params), task))


def call(path: str, command: str, params: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Send a command and return its answer.

    :raises OSError: when no process listens at ``path``, or its queue is full
    :raises TimeoutError: when there is no answer within ``timeout`` seconds
    :raises ValueError: when the answer is not a JSON dictionary
    """
    reader, writer = pipe()
    try:
        try:
            send_command(path, command, params, writer)
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        return _answer(reader, timeout)
    finally:
        os.close(reader)


def _answer(reader: int, timeout: float) -> dict[str, Any]:
    deadline, answer, buffer = monotonic() + timeout, b"", memoryview(bytearray(wire.MAX_MESSAGE))
    ended = False
    while not ended:
        if not wait([reader], [], deadline - monotonic()):
            raise TimeoutError(f"no answer within {timeout:g} s")
        data = read_now(reader, buffer)
        answer += data or b""
        ended = data == b""
    answered = json.loads(answer)
    if not isinstance(answered, dict):
        raise ValueError("not an answer")
    return answered
