"""Waiting for descriptors in whatever thread there is: a green thread waits alone, a plain one as it always did.

Swift replaces ``select`` with a green one at its start; therefore it is looked up at each call.  That one may be
given *one* descriptor in *one* direction only.  With more, all that become ready in the same round of the hub
call back, the first of them wakes the green thread, and the others wake it again, wherever it waits by then:
it takes their answer for that of a queue or a socket.  So several are put into an epoll, which is one
descriptor that can be read.  ``select`` has no epoll left where it is green; a second copy of that module has.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from importlib.util import find_spec, module_from_spec
from typing import Any


def _copy_select() -> Any:
    """A copy of the module ``select`` as it is before anybody makes it green."""
    spec = find_spec("select")
    if spec is None or spec.loader is None:
        raise ImportError("no module `select`")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_PLAIN: Any = _copy_select()


def wait(readers: Sequence[int], writers: Sequence[int], timeout: float) -> bool:
    """Until one of the descriptors is ready; False when none was within ``timeout`` seconds."""
    timeout = max(0.0, timeout)
    wanted = dict.fromkeys(readers, _PLAIN.POLLIN)
    for descriptor in writers:
        wanted[descriptor] = wanted.get(descriptor, 0) | _PLAIN.POLLOUT
    if hasattr(select, "poll"):  # not green; and the plain select knows no large descriptors
        poll = select.poll()
        for descriptor, events in wanted.items():
            poll.register(descriptor, events)
        return bool(poll.poll(timeout * 1000))
    if len(readers) + len(writers) < 2:
        return any(select.select(readers, writers, [], timeout))
    with _PLAIN.epoll() as together:
        for descriptor, events in wanted.items():
            together.register(descriptor, events)  # EPOLLIN and EPOLLOUT are the same numbers
        return any(select.select([together.fileno()], [], [], timeout))


def pause(seconds: float) -> None:
    """Let ``seconds`` go by."""
    select.select([], [], [], seconds)
