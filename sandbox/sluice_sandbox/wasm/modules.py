"""WebAssembly code for execution: checked, compiled once per node, kept in a private folder.

Compiled code is machine code: loading it means running it.  So only files that Sluice wrote itself are loaded: in a
folder of its user that no other user may write or read, under the digest of the source, wasmtime's version and the
settings.  If that folder does not qualify, each process compiles for itself.

A module imports nothing, so it can access only its own memory.  Its exports are
the interface (``docs/admin/isolated-filters.md``): ``memory``, ``alloc``, ``feed``, ``finish``, and ``start``
when it takes parameters.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import wasmtime

from sluice_code.code_store import BadUpload, CodeStore
from sluice_sandbox.limits import SandboxFault

#: Larger modules take seconds to compile.
MAX_CODE: Final = 8 * 1024 * 1024
_SETTINGS: Final = "fuel-1"
_I32: Final = "i32"
_I64: Final = "i64"
#: Parameter and result types of a module's exports; the last one may be missing.
_FUNCTIONS: Final = {
    "alloc": ((_I32,), (_I32,)),
    "feed": ((_I32, _I32), (_I64,)),
    "finish": ((), (_I64,)),
    "start": ((_I32, _I32, _I32), (_I32,)),
}
_log = logging.getLogger(__name__)


def engine() -> wasmtime.Engine:
    """The compiler and its settings: fuel is counted, neither code nor the compiler uses threads."""
    config = wasmtime.Config()
    config.consume_fuel = True
    config.parallel_compilation = False
    config.wasm_threads = False
    config.wasm_memory64 = False
    config.max_wasm_stack = 512 * 1024
    return wasmtime.Engine(config)


def check(code: bytes) -> None:
    """Refuse code that cannot be a filter.

    :raises BadUpload: with the reason
    """
    if len(code) > MAX_CODE:
        raise BadUpload(f"WebAssembly of {len(code)} bytes, expected at most {MAX_CODE}")
    if not code.startswith(b"\0asm"):
        raise BadUpload("no WebAssembly module; text format is compiled before it is uploaded")
    try:
        module = wasmtime.Module(engine(), code)
    except wasmtime.WasmtimeError as error:
        raise BadUpload(f"WebAssembly does not compile: {str(error).splitlines()[0]}") from error
    foreign = [f"{one.module}.{one.name}" for one in module.imports]
    if foreign:
        raise BadUpload(f"WebAssembly imports `{foreign[0]}`, expected no imports")
    exports: dict[str, Any] = {one.name: one.type for one in module.exports}
    if not isinstance(exports.get("memory"), wasmtime.MemoryType):
        raise BadUpload("WebAssembly exports no `memory`")
    for name, wanted in _FUNCTIONS.items():
        if name in exports or name != "start":
            _check_function(name, exports.get(name), wanted)


def _check_function(name: str, function: Any, wanted: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    shape = f"({', '.join(wanted[0])}) -> {wanted[1][0]}"
    if not isinstance(function, wasmtime.FuncType):
        raise BadUpload(f"WebAssembly exports no function `{name}{shape}`")
    types = tuple(map(str, function.params)), tuple(map(str, function.results))
    if types != wanted:
        raise BadUpload(f"function `{name}` is ({', '.join(types[0])}) -> {', '.join(types[1])}, expected {shape}")


class ModuleCache:
    """Compiled modules by the SHA-256 of their source; ``cache`` is the private folder, None for none."""

    def __init__(self, store: CodeStore, cache: Path | None = None) -> None:
        self._store = store
        self._cache = cache
        self._loaded: dict[str, wasmtime.Module] = {}
        self._engine: wasmtime.Engine | None = None
        self._process = 0

    @property
    def engine(self) -> wasmtime.Engine:
        """One engine per process: Swift forks after it loaded its pipeline."""
        if self._engine is None or self._process != os.getpid():
            self._engine, self._process = engine(), os.getpid()
            self._loaded = {}
        return self._engine

    def get(self, sha256: str) -> wasmtime.Module:
        """Return the compiled code of that name.

        :raises SluiceError: when it is missing, or does not compile
        """
        engine = self.engine
        module = self._loaded.get(sha256)
        if module is None:
            module = self._loaded[sha256] = self._load(engine, sha256)
        return module

    def _load(self, engine: wasmtime.Engine, sha256: str) -> wasmtime.Module:
        cached = self._cached(sha256)
        try:
            if cached is not None and cached.exists():
                return wasmtime.Module.deserialize_file(engine, str(cached))
        except wasmtime.WasmtimeError as error:
            _log.warning("compiled code `%s` is made anew: %s", cached, str(error).splitlines()[0])
        try:
            module = wasmtime.Module(engine, self._store.read(sha256))
        except wasmtime.WasmtimeError as error:
            raise SandboxFault(f"code `{sha256}` does not compile: {str(error).splitlines()[0]}") from error
        if cached is not None:
            _write(cached, bytes(module.serialize()))
        return module

    def _cached(self, sha256: str) -> Path | None:
        """Return the path of the compiled code; None when other users may access the folder."""
        folder = self._cache
        if folder is None:
            return None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.lstat()
        private = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077
        if not private:
            _log.warning("`%s` is not a folder of this user alone (0700): compiled code is not kept", folder)
            self._cache = None
            return None
        return folder / f"{sha256}-{version('wasmtime')}-{_SETTINGS}.cwasm"


def _write(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).rename(path)
