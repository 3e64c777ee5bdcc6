"""Plans as actors keep them: thousands of sentences share their actions and conditions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from sluice_core.errors import DecodeError
from sluice_dsl.plan import Plan

T = TypeVar("T")

_LIMIT: Final = 10_000


class PlanCache:
    """Decodes plans and keeps one copy of each equal part."""

    def __init__(self) -> None:
        self._shared: dict[str, Any] = {}

    def decode(self, data: Mapping[str, Any]) -> Plan:
        """The plan in a policy's ``plan``.

        :raises DecodeError: when it is none, or has nothing to watch
        """
        plan = Plan.from_data(data)
        if not plan.dynamic:
            raise DecodeError(f"plan without a metric: `{dict(data)!r}`")
        return replace(
            plan,
            actions=self._share("actions", data["actions"], lambda: plan.actions),
            condition=self._share("condition", data.get("condition", True), lambda: plan.condition),
            metrics=self._share("metrics", plan.metrics, lambda: plan.metrics),
            granularity=self._share("granularity", plan.granularity, lambda: plan.granularity),
        )

    def _share(self, kind: str, data: Any, make: Callable[[], T]) -> T:
        if len(self._shared) >= _LIMIT:
            self._shared.clear()  # those in use stay with their users; sharing begins anew
        found: T = self._shared.setdefault(f"{kind}{json.dumps(data, sort_keys=True)}", make())
        return found
