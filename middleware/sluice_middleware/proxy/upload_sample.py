"""The compressibility of an upload: its first bytes are read before anything is decided, and put back."""

from __future__ import annotations

from typing import Final

from sluice_metrics.builtin.compressibility import Compressibility
from sluice_middleware.swift.proxy_api import ChunkReadError
from sluice_middleware.wsgi.inputs import RewoundInput
from sluice_middleware.wsgi.policy_lookup import Env

_SIZE: Final = Compressibility.sample_size
_MEASURE: Final = Compressibility()
#: In the environment of a PUT: what was measured of it, since its body may be another one later.
_MEASURED: Final = "sluice.compressibility"


def measure_compressibility(env: Env) -> float | None:
    """Plain bytes by compressed ones of the first 64 KiB of the body in ``env``; None when none comes.

    The measure is that of the metric ``COMPRESSIBILITY``.  A client that breaks off here breaks off for Swift, too.
    """
    if _MEASURED not in env:
        sample = _read_sample(env)
        amount, weight = _MEASURE.sampled(sample) if sample else (0.0, 0.0)
        env[_MEASURED] = amount / weight if weight else None
    measured: float | None = env[_MEASURED]
    return measured


def _read_sample(env: Env) -> bytes:
    source = env["wsgi.input"]
    pieces: list[bytes] = []
    left = _SIZE
    try:
        while left:
            piece = source.read(left)
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
    except (ChunkReadError, OSError, ValueError):
        pass  # what comes is too short, which Swift finds out itself
    sample = b"".join(pieces)
    env["wsgi.input"] = RewoundInput(sample, source)
    return sample
