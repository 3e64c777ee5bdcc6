"""The filter that reads objects ahead of a client that reads them in order (Crystal, section 2.1).

This is only its description; a host with a cache provides the implementation
(:class:`~sluice_filters.visits.ObjectCache`).
"""

from __future__ import annotations

from typing import ClassVar

from sluice_core.describe import FILTER, PROXY, ActionInfo, Parameter
from sluice_filters.api import Filter
from sluice_filters.visits import Call, Visit


class Prefetch(Filter):
    """Reads the next objects by name into the cache, segments of large objects included."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="prefetch",
        kind=FILTER,
        help="read the next objects by name into the cache while objects are read in order; wants `caching`",
        parameters=(
            Parameter("ahead", "int", "objects that are read ahead", default=4, minimum=1, maximum=64),
            Parameter("max_size", "size", "larger objects are not read ahead", default=16 << 20, minimum=1),
        ),
        places=(PROXY,),
        default_place=PROXY,
        stage=45,
        on_put=False,
        on_request=True,
        methods=("GET",),
        on_answer=True,
    )

    def visit(self, call: Call) -> Visit | None:
        cache = self.surroundings.cache
        return None if cache is None else cache.prefetch(call, self.params)
