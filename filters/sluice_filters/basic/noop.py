"""The filter that changes nothing, for measuring the cost of the filter chain itself."""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import FILTER, ActionInfo
from sluice_filters.api import Filter, Hint, Stream, Transparent


class Noop(Filter):
    """Passes bytes on, in both directions."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="noop",
        kind=FILTER,
        help="change nothing; for measuring and for trying out conditions",
        stage=100,
        on_put=True,
        on_get=True,
    )

    def encoder(self, hint: Hint) -> Stream:
        return Transparent()
