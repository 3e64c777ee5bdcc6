"""The kinds of uploaded code: what differs between filters, metrics and controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

#: Environments whose code needs one more operation, and the operation.
TRIED: Final = ("native", "nbdkit")
#: The environment of filters that volumes have, which are deployed by no sentence.
VOLUMES: Final = "nbdkit"
NATIVE_OPERATION: Final = "filters:native"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind; ``path`` is where the API has it, ``parameter`` what URLs call one.

    ``page_title`` is a template of Django's with its ``name``.  ``operations`` maps what one may do to operations of
    the API.
    """

    slug: str
    parameter: str
    path: str
    title: Any
    page_title: Any
    operations: Mapping[str, str]

    def name(self, parameters: Mapping[str, Any]) -> str:
        """The one that a URL with these parameters is about."""
        return str(parameters[self.parameter])

    def url(self, page: str, *args: object) -> str:
        """The URL of ``detail``, ``upload``, ``roll_back`` … of the one that ``args`` begin with."""
        return str(reverse(f"horizon:sluice:code:{self.parameter}{'' if page == 'detail' else f'_{page}'}", args=args))

    @property
    def can_start(self) -> bool:
        """Whether it can be started and stopped."""
        return "start" in self.operations


def _started_operations(rules: str) -> Mapping[str, str]:
    """What one may do to code that is started and stopped → the operation."""
    same = {verb: f"{rules}:{verb}" for verb in ("upload", "start", "stop", "delete", "instances")}
    return {"add": f"{rules}:upload", "roll_back": f"{rules}:rollback", **same}


FILTERS: Final = Kind(
    "filters",
    "filter",
    "/filters",
    _("Filters"),
    _("Filter {{ name }}"),
    {
        "add": "filters:register",
        "upload": "filters:upload",
        "roll_back": "filters:rollback",
        "delete": "filters:unregister",
    },
)
METRICS: Final = Kind(
    "metrics",
    "metric",
    "/registry/metrics",
    _("Metrics"),
    _("Metric {{ name }}"),
    _started_operations("metrics"),
)
CONTROLLERS: Final = Kind(
    "controllers",
    "controller",
    "/controllers",
    _("Controllers"),
    _("Controller {{ name }}"),
    _started_operations("controllers"),
)
KINDS: Final = {kind.slug: kind for kind in (FILTERS, METRICS, CONTROLLERS)}


class CodeView:
    """Mixed into views of the filter, metric or controller that the URL names."""

    kwargs: Mapping[str, Any]

    @cached_property
    def kind(self) -> Kind:
        """Which kind it is of."""
        return KINDS[self.kwargs["kind"]]

    @property
    def name(self) -> str:
        """Which one it is."""
        return self.kind.name(self.kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return {**context, "name": self.name}
