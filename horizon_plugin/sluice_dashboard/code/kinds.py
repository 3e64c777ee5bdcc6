"""The kinds of uploaded code: differences between filters, metrics and controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

#: Environments whose code needs one more operation → the operation.
TRIED: Final = ("native", "nbdkit")
#: The environment of filters of volumes, which no sentence deploys.
VOLUMES: Final = "nbdkit"
NATIVE_OPERATION: Final = "filters:native"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind; ``path`` is its path in the API, ``parameter`` the parameter of URLs that names one.

    ``page_title`` is a Django template with its ``name``.  ``operations`` maps actions of the page to operations of
    the API.
    """

    slug: str
    parameter: str
    path: str
    title: Any
    page_title: Any
    operations: Mapping[str, str]

    def name(self, parameters: Mapping[str, Any]) -> str:
        """The name in the parameters of a URL."""
        return str(parameters[self.parameter])

    def url(self, page: str, *args: object) -> str:
        """The URL of ``detail``, ``upload``, ``roll_back`` … of the one whose name begins ``args``."""
        return str(reverse(f"horizon:sluice:code:{self.parameter}{'' if page == 'detail' else f'_{page}'}", args=args))

    @property
    def can_start(self) -> bool:
        """Whether it can be started and stopped."""
        return "start" in self.operations


def _started_operations(rules: str) -> Mapping[str, str]:
    """Actions on code that can be started and stopped → the operation."""
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
    """Mixed into views of the filter, metric or controller in the URL."""

    kwargs: Mapping[str, Any]

    @cached_property
    def kind(self) -> Kind:
        """Its kind."""
        return KINDS[self.kwargs["kind"]]

    @property
    def name(self) -> str:
        """Its name."""
        return self.kind.name(self.kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return {**context, "name": self.name}
