"""The filters that an upload passes, on the proxy and on storage nodes, and how well its first bytes compress."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from sluice_filters.api import Filter, Hint
from sluice_filters.chain import ChainEncoder
from sluice_metrics.builtin.compressibility import Compressibility
from sluice_middleware.swift.proxy_api import ChunkReadError
from sluice_middleware.wsgi import backend_headers, encoding, read_pipeline, sysmeta
from sluice_middleware.wsgi.encoding import EncodedInput
from sluice_middleware.wsgi.inputs import RewoundInput
from sluice_middleware.wsgi.policy_lookup import SelectedFilter, Target, proxy_encoders, storage_node_encoders
from sluice_middleware.wsgi.response import Env

_SIZE: Final = Compressibility.sample_size
_MEASURE: Final = Compressibility()
#: In the environment of a PUT: its measured compressibility, since its body may change later.
_MEASURED: Final = "sluice.compressibility"


@dataclass(frozen=True, slots=True)
class UploadFilters:
    """``on_proxy`` and ``on_nodes`` in running order; ``hint`` has the attributes of the upload."""

    hint: Hint
    on_proxy: Sequence[Filter]
    on_nodes: Sequence[SelectedFilter]

    @classmethod
    def select(
        cls, pipeline: list[SelectedFilter], env: Env, target: Target, name: str, size: int | None, content_type: Any
    ) -> Self:
        """Return the filters of a pipeline that apply to an upload of ``size`` bytes."""
        asked = read_pipeline.requested_headers((one.filter for one in pipeline), env)
        hint = Hint(size=size, content_type=content_type, name=name, account=target[0], asked=asked)
        nodes = [one for one in storage_node_encoders(pipeline) if one.filter.applies(hint)]
        return cls(hint, [one for one in proxy_encoders(pipeline) if one.applies(hint)], nodes)

    def reversible(self) -> UploadFilters:
        """Return the filters without those that change the bytes irreversibly or not at all."""
        kept = [one for one in self.on_proxy if one.info.reversible and one.info.changes_content]
        return replace(self, on_proxy=kept)

    def are_recorded(self, records: Sequence[Mapping[str, Any]], node_steps: str | None) -> bool:
        """Whether these filters stored an object with these records, and this value of ``sysmeta.NODE``."""
        if len(records) != len(self.on_proxy):
            return False
        for one, record in zip(self.on_proxy, records, strict=True):
            if (record["f"], record.get("v")) != (one.info.keyword, one.info.version) or not one.writes(record["r"]):
                return False
        return (json.loads(node_steps) if node_steps else []) == backend_headers.encode_steps(self.on_nodes)


def prepare_reversible(env: Env, wanted: UploadFilters) -> EncodedInput | None:
    """Encode the body of the upload in ``env``; return None when no filter of the proxy will change it."""
    backend_headers.write_steps(env, wanted.on_nodes)
    if not wanted.on_proxy:
        return None
    encoder = ChainEncoder(wanted.on_proxy, wanted.hint)
    sampling = all(0 < one.decides_within <= encoding.BATCH for one in wanted.on_proxy)
    body = encoding.prepare_upload(env, encoder, wanted.hint.size, encoder.heavy, sampling)
    if body is not None:
        _check_unrecorded(env, body)
    return body


def _check_unrecorded(env: Env, body: EncodedInput) -> None:
    """Let object servers refuse bytes that differ from the plain ones and have no record to decode them.

    Every filter that runs here is reversible, so this happens only if a filter or this code has a bug.
    """
    describe = env[encoding.FOOTERS]

    def callback(footers: encoding.Footers) -> None:
        describe(footers)
        if sysmeta.CHAIN not in footers:
            footers.setdefault("Etag", body.etag)

    env[encoding.FOOTERS] = callback


def measure_compressibility(env: Env) -> float | None:
    """Return plain bytes divided by compressed bytes of the first 64 KiB of the body in ``env``; None without a body.

    They are read before any decision, and put back.  The measure is that of the metric ``COMPRESSIBILITY``.  If the
    client disconnects meanwhile, Swift's read fails, too.
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
        pass  # the body is too short, which Swift detects itself
    sample = b"".join(pieces)
    env["wsgi.input"] = RewoundInput(sample, source)
    return sample
