"""The filters that an upload passes, on the proxy and on storage nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from sluice_filters.api import Filter, Hint
from sluice_middleware.wsgi import backend_headers, read_pipeline
from sluice_middleware.wsgi.policy_lookup import SelectedFilter, Target, proxy_encoders, storage_node_encoders
from sluice_middleware.wsgi.response import Env


@dataclass(frozen=True, slots=True)
class UploadFilters:
    """``on_proxy`` and ``on_nodes`` in running order; ``hint`` says what is known of the upload."""

    hint: Hint
    on_proxy: Sequence[Filter]
    on_nodes: Sequence[SelectedFilter]

    @classmethod
    def select(
        cls, pipeline: list[SelectedFilter], env: Env, target: Target, name: str, size: int | None, content_type: Any
    ) -> Self:
        """Those of a pipeline that apply to an upload of ``size`` bytes."""
        asked = read_pipeline.requested_headers((one.filter for one in pipeline), env)
        hint = Hint(size=size, content_type=content_type, name=name, account=target[0], asked=asked)
        nodes = [one for one in storage_node_encoders(pipeline) if one.filter.applies(hint)]
        return cls(hint, [one for one in proxy_encoders(pipeline) if one.applies(hint)], nodes)

    def reversible(self) -> UploadFilters:
        """Without those that change the bytes for good or do not change them."""
        kept = [one for one in self.on_proxy if one.info.reversible and one.info.changes_content]
        return replace(self, on_proxy=kept)

    def are_recorded(self, records: Sequence[Mapping[str, Any]], node_steps: str | None) -> bool:
        """Whether an object with these records, and this value of ``sysmeta.NODE``, was stored by these filters."""
        if len(records) != len(self.on_proxy):
            return False
        for one, record in zip(self.on_proxy, records, strict=True):
            if (record["f"], record.get("v")) != (one.info.keyword, one.info.version) or not one.writes(record["r"]):
                return False
        return (json.loads(node_steps) if node_steps else []) == backend_headers.encode_steps(self.on_nodes)
