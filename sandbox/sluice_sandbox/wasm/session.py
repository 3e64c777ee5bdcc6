"""The environment `wasm`: uploaded WebAssembly in the host's own process, in a memory of its own.

Theory of operation.  Each step of a stream is an instance of its own, made in some tens of microseconds from the
compiled module and deleted at the end.  It can access only its own memory, whose size is limited; its computation
consumes fuel, about one unit per instruction, so a loop ends with the fuel: each call receives some for itself and some
for each byte, and all calls of a stream share a budget.  Traps, bad pointers and exhausted budgets are faults of that
stream alone.

The host computes in the calling thread.  Code that takes long for its bytes is ``heavy``, so that hosts run it in a
thread: a trial at admission measures its fuel, which is the same on every machine, and every stream measures it again.
"""

from __future__ import annotations

import ctypes
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import wasmtime

from sluice_code.code_store import BadUpload, CodeStore
from sluice_core.describe import WASM
from sluice_core.errors import SluiceError
from sluice_core.messages.uploads import Upload
from sluice_filters.api import FilterError, Hint, Stream
from sluice_filters.pipe import Pipe
from sluice_sandbox.api import SandboxTeam
from sluice_sandbox.isolated import IsolatedFilter
from sluice_sandbox.limits import UNDO, Limits, SandboxFault, Session, Step
from sluice_sandbox.wasm import modules
from sluice_sandbox.wasm.call import ExportedFunction

#: Greatest number of bytes passed to an instance at once.
PIECE: Final = 128 * 1024
#: Fuel of a second of processor time; an instruction takes from a third of a nanosecond to several.
FUEL_PER_SECOND: Final = 1_000_000_000
#: Seconds that every call may compute, besides the allowance for its bytes.
_CALL: Final = 0.02
#: With more fuel per byte than this, a hundred kilobytes take longer than a change of threads.
_HEAVY: Final = 4.0
_TRIAL: Final = bytes(range(256)) * 256
#: Limit of the memory of a tenant's instances in one process, as a multiple of that of one.
_TOGETHER: Final = 8


class WasmTeam(SandboxTeam):
    """WebAssembly filters in this process; ``cache`` is a private folder for compiled code."""

    environment: ClassVar[str] = WASM

    def __init__(self, store: CodeStore, cache: Path | None = None, limits: Limits | None = None) -> None:
        super().__init__(Limits(memory=64 * 1024 * 1024) if limits is None else limits)
        self._modules = modules.ModuleCache(store, cache)
        self._classes: dict[str, type[IsolatedFilter]] = {}
        self._heavy: set[str] = set()
        #: Bytes of memory of each tenant's instances.
        self.held: defaultdict[str, int] = defaultdict(int)

    def admit(self, upload: Upload, code: bytes) -> None:
        if upload.dependencies:
            raise BadUpload("environment `wasm` takes one module, linked with all that it needs")
        modules.check(code)
        self._try(Step(upload.keyword, upload.sha256, upload.main, {}))

    def _try(self, step: Step) -> None:
        """Measure its computation; a failure on arbitrary bytes is not an error."""
        instance = WasmInstance(self, step, "", self._modules.engine, self._modules.get(step.code))
        try:
            instance.start()
            instance.feed(_TRIAL)
            instance.finish()
        except SandboxFault:
            instance.close()

    def register(self, filter_class: type[IsolatedFilter]) -> None:
        self._classes[filter_class.upload.sha256] = filter_class
        if filter_class.upload.sha256 in self._heavy:
            filter_class.heavy = True

    def mark_heavy(self, sha256: str) -> None:
        """Mark that code as ``heavy`` from now on."""
        self._heavy.add(sha256)
        if sha256 in self._classes:
            self._classes[sha256].heavy = True

    def session(self, steps: Sequence[Step], hint: Hint) -> Session:
        return WasmSession(self, steps, hint.account)

    def instance(self, step: Step, tenant: str) -> WasmInstance:
        """Return a new instance for ``step``.

        :raises FilterError: when it cannot be made
        """
        try:
            module = self._modules.get(step.code)
        except SluiceError as error:
            raise FilterError(f"filter `{step.keyword}` cannot run: {error}") from error
        one = WasmInstance(self, step, tenant, self._modules.engine, module)
        one.start()
        return one


class WasmInstance(Stream):
    """One step of one stream."""

    def __init__(
        self, team: WasmTeam, step: Step, tenant: str, engine: wasmtime.Engine, module: wasmtime.Module
    ) -> None:
        self.taken = 0
        self.given = 0
        self._team = team
        self._step = step
        self._tenant = tenant
        self._held = 0
        self._used = 0
        limits = team.limits
        self._store = store = wasmtime.Store(engine)
        store.set_limits(memory_size=limits.memory, table_elements=100_000, instances=1, tables=4, memories=1)
        exports: Any = self._call(_CALL, lambda: wasmtime.Instance(store, module, []).exports(store))
        self._memory: Any = exports["memory"]
        self._feed = ExportedFunction(store, exports["feed"], wide=True)
        self._finish = ExportedFunction(store, exports["finish"], wide=True)
        self._room: int = self._call(_CALL, ExportedFunction(store, exports["alloc"], wide=False), PIECE)
        self._start = ExportedFunction(store, exports["start"], wide=False) if "start" in exports else None

    def start(self) -> None:
        """Pass the parameters in."""
        if self._start is None:
            return
        told = json.dumps(dict(self._step.params)).encode()
        self._put(told)
        refused = self._call(_CALL, self._start, self._room, len(told), int(self._step.direction == UNDO))
        if refused:
            raise SandboxFault(f"filter `{self._step.keyword}` refused its parameters with `{refused}`")

    def feed(self, data: bytes) -> bytes:
        out = []
        for begin in range(0, len(data), PIECE):
            piece = data[begin : begin + PIECE] if len(data) > PIECE else data
            self._put(piece)
            self.taken += len(piece)
            seconds = _CALL + self._team.limits.cpu_per_mb * len(piece) / 1e6
            out.append(self._get(self._call(seconds, self._feed, self._room, len(piece))))
        return out[0] if len(out) == 1 else b"".join(out)

    def finish(self) -> bytes:
        seconds = _CALL + self._team.limits.cpu_per_mb * self.taken / 1e6
        rest = self._get(self._call(seconds, self._finish))
        self.close()
        return rest

    def close(self) -> None:
        """Close the instance, after which it cannot be called."""
        if self.taken >= len(_TRIAL) and self._used > _HEAVY * self.taken:
            self._team.mark_heavy(self._step.code)
        self._hold(0)

    def _call(self, seconds: float, function: Callable[..., Any], *args: Any) -> Any:
        """Call into the code with fuel for ``seconds``, if the stream's budget permits it."""
        purse = int(self._team.limits.seconds(self.taken) * FUEL_PER_SECOND) - self._used
        fuel = max(1, min(purse, int(seconds * FUEL_PER_SECOND)))
        self._store.set_fuel(fuel)
        try:
            result = function(*args)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            raise SandboxFault(f"filter `{self._step.keyword}` {_reason(error, self._store.get_fuel())}") from error
        self._used += fuel - self._store.get_fuel()
        return result

    def _put(self, data: bytes) -> None:
        base = self._bounds(self._room, len(data))
        ctypes.memmove(base + self._room, data, len(data))

    def _get(self, packed: int) -> bytes:
        if packed < 0:
            raise SandboxFault(f"filter `{self._step.keyword}` failed with `{-packed}`")
        place, size = packed >> 32, packed & 0xFFFFFFFF
        self._hold(self._memory.data_len(self._store))
        if not size:
            return b""
        base = self._bounds(place, size)
        self.given += size
        return ctypes.string_at(base + place, size)

    def _bounds(self, place: int, size: int) -> int:
        """Return the address of the memory; raise if ``size`` bytes at ``place`` are not inside."""
        place &= 0xFFFFFFFF
        if place + size > self._memory.data_len(self._store):
            raise SandboxFault(f"filter `{self._step.keyword}` points outside of its memory")
        return ctypes.addressof(self._memory.data_ptr(self._store).contents)

    def _hold(self, size: int) -> None:
        """Account for the memory that it uses now."""
        if size == self._held:
            return
        held = self._team.held
        held[self._tenant] += size - self._held
        self._held = size
        if held[self._tenant] > _TOGETHER * self._team.limits.memory:
            raise SandboxFault(
                f"filter `{self._step.keyword}`: streams of tenant `{self._tenant}` hold too much memory"
            )
        if not held[self._tenant]:
            del held[self._tenant]

    def __del__(self) -> None:
        if getattr(self, "_held", 0):
            self._hold(0)


class WasmSession(Pipe, Session):
    """One stream through instances."""

    def __init__(self, team: WasmTeam, steps: Sequence[Step], tenant: str) -> None:
        self._instances = [team.instance(one, tenant) for one in steps]
        super().__init__(self._instances)

    def counts(self) -> Sequence[tuple[int, int]]:
        return [(one.taken, one.given) for one in self._instances]


def _reason(error: Exception, fuel: int) -> str:
    """Return the reason of a trap in the host's words: traps carry a trace of the module's own names."""
    if not fuel:
        return "took too much processor time"
    code = error.trap_code if isinstance(error, wasmtime.Trap) else None
    if code is not None:
        return f"trapped: {code.name.lower().replace('_', ' ')}"
    return "trapped" if isinstance(error, wasmtime.Trap) else "could not be called"
