"""The tenant's code as steps of a stream in a worker; standard library only, inside the jail."""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
import time
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from typing import Any, Final


class SharedCounters:
    """Three numbers that worker and supervisor share: entries into code, whether inside, open streams."""

    SIZE: Final = 4096

    def __init__(self, descriptor: int) -> None:
        self._map = mmap.mmap(descriptor, self.SIZE)
        self._cells = memoryview(self._map).cast("Q")

    def enter(self) -> None:
        """Worker: a call into a tenant's code begins."""
        self._cells[0] += 1
        self._cells[1] = 1

    def leave(self) -> None:
        """Worker: the call returned."""
        self._cells[1] = 0

    def streams(self, count: int) -> None:
        """Worker: ``count`` streams are open now; the supervisor counts this as activity, too."""
        self._cells[2] = count
        self._cells[0] += 1

    def read(self) -> tuple[int, bool, int]:
        """Return the calls so far, whether code runs now, and the open streams."""
        return self._cells[0], self._cells[1] != 0, self._cells[2]

    def close(self) -> None:
        """Unmap the page; it may no longer be read or written."""
        self._cells.release()
        self._map.close()


class StepFault(Exception):
    """A step failed; ``what`` is at most the name of an exception."""

    def __init__(self, step: int, fault: str, what: str = "") -> None:
        super().__init__(fault)
        self.message = {"step": step, "fault": fault, "what": what}


class _Bytes(SourceFileLoader):
    """Imports a module from bytes, without a cache."""

    def __init__(self, name: str, code: bytes) -> None:
        super().__init__(name, f"/{name}.py")
        self._code = code

    def get_data(self, path: str) -> bytes:
        return self._code

    def path_stats(self, path: str) -> Any:
        raise OSError("no cache")


class LoadedCode:
    """The code that was loaded so far, by its SHA-256."""

    def __init__(self) -> None:
        self._modules: dict[str, Any] = {}

    def main(self, number: int, step: dict[str, Any], descriptor: int) -> Any:
        """Return the class that ``step`` names."""
        sha256 = str(step["code"])
        module = self._modules.get(sha256)
        if module is None:
            module = self._modules[sha256] = self._load(number, sha256, descriptor)
        main = getattr(module, str(step["main"]), None)
        if not isinstance(main, type):
            raise StepFault(number, "main")
        return main

    def _load(self, number: int, sha256: str, descriptor: int) -> Any:
        code = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        if hashlib.sha256(code).hexdigest() != sha256:
            raise StepFault(number, "digest")
        name = f"filter_{sha256[:16]}"
        loader = _Bytes(name, code)
        module = module_from_spec(ModuleSpec(name, loader, origin=f"/{name}.py"))
        # dataclasses and pickling look up their module by name
        sys.modules[name] = module
        try:
            loader.exec_module(module)
        except BaseException as error:  # any exception of uploaded code fails its own request
            del sys.modules[name]
            raise StepFault(number, "load", type(error).__name__) from error
        return module


class StepChain:
    """The steps of one stream."""

    def __init__(self, page: SharedCounters, seconds: tuple[float, float]) -> None:
        self._page = page
        self._cpu, self._cpu_per_byte = seconds
        self._used = 0.0
        self._steps: list[Any] = []
        self.counts: list[list[int]] = []

    def start(self, library: LoadedCode, steps: list[dict[str, Any]], descriptors: list[int]) -> None:
        """Make an instance of each step; the code of each is read from its descriptor unless ``library`` has it.

        :raises StepFault: when code cannot be loaded or its class raises
        """
        for number, (step, descriptor) in enumerate(zip(steps, descriptors, strict=True)):
            self._page.enter()
            try:
                main = library.main(number, step, descriptor)
                self._steps.append(main(dict(step["params"]), str(step["direction"])))
            except StepFault:
                raise
            except BaseException as error:  # see _load
                raise StepFault(number, "raised", type(error).__name__) from error
            finally:
                self._page.leave()
            self.counts.append([0, 0])

    def feed(self, data: bytes) -> bytes:
        """Return the output of the last step for ``data``.

        :raises StepFault: when a step raises, returns something other than bytes, or took too much processor time
        """
        for number in range(len(self._steps)):
            if not data:
                break
            data = self._feed_step(number, data)
        return data

    def finish(self) -> bytes:
        """Return the output of the last step at the end of the input; raises as :meth:`feed`."""
        rest = b""
        for number, step in enumerate(self._steps):
            fed = self._feed_step(number, rest) if rest else b""
            rest = fed + self._call(number, step.finish)
        return rest

    def _feed_step(self, number: int, data: bytes) -> bytes:
        self.counts[number][0] += len(data)
        return self._call(number, self._steps[number].feed, data)

    def _call(self, number: int, method: Any, *args: bytes) -> bytes:
        begun = time.thread_time()
        self._page.enter()
        try:
            out = method(*args)
        except BaseException as error:  # see _load
            raise StepFault(number, "raised", type(error).__name__) from error
        finally:
            self._page.leave()
        self._used += time.thread_time() - begun
        if self._used > self._cpu + self._cpu_per_byte * self.counts[0][0]:
            raise StepFault(number, "cpu")
        if type(out) is not bytes:
            if not isinstance(out, bytes | bytearray | memoryview):
                raise StepFault(number, "shape")
            out = bytes(out)
        self.counts[number][1] += len(out)
        return out
