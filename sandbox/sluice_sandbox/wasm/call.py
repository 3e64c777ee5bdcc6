"""Calls into WebAssembly, as fast as wasmtime's C interface makes them.

``wasmtime.Func`` asks for the function's type and converts each value on every call, which takes longer
than small filters do.  The types of the exports were checked when the code was admitted (``modules.check``), so the
unchecked call of the C interface is safe here.  Only this file uses wasmtime's bindings below its public classes.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import wasmtime
from wasmtime import _ffi as ffi

_MOST: Final = 3


class ExportedFunction:
    """An exported function of integers; ``wide`` when its result has 64 bits."""

    def __init__(self, store: wasmtime.Store, function: Any, wide: bool) -> None:
        # kept, since the C side has only addresses
        self._kept = store, function
        self._context = store._context()
        self._function = ctypes.byref(function._func)
        self._values: Any = (ffi.wasmtime_val_raw_t * _MOST)()
        self._wide = wide

    def __call__(self, *args: int) -> int:
        """
        :raises wasmtime.Trap: when the code fails
        :raises wasmtime.WasmtimeError: when it cannot be called
        """
        values = self._values
        for place, value in enumerate(args):
            values[place].i32 = value
        trap = ctypes.POINTER(ffi.wasm_trap_t)()
        error = ffi.wasmtime_func_call_unchecked(self._context, self._function, values, _MOST, ctypes.byref(trap))
        if error:
            raise wasmtime.WasmtimeError._from_ptr(error)
        if trap:
            raise wasmtime.Trap._from_ptr(trap)
        return int(values[0].i64 if self._wide else values[0].i32)
