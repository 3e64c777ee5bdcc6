"""The filter that keeps whole objects on a fast disk at the proxy.

This is only its description; the disk, the other workers of the node and the other proxies are handled by the host,
which provides an :class:`~sluice_filters.visits.ObjectCache`.  Without a cache, every request passes.
"""

from __future__ import annotations

from typing import ClassVar, Final

from sluice_core.describe import FILTER, PROXY, ActionInfo, Parameter
from sluice_filters.api import Filter
from sluice_filters.visits import Call, Visit

DEFAULT: Final = "default"
STRICT: Final = "strict"


class Caching(Filter):
    """Answers GET and HEAD of objects that were read or written before, without a request to the disks."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="caching",
        kind=FILTER,
        help="keep whole objects on a fast disk at the proxy",
        parameters=(
            Parameter("max_size", "size", "larger objects are not kept", default=16 << 20, minimum=0),
            Parameter(
                "mode",
                "str",
                "`default` may be stale for a second, `strict` asks the disks about each hit and never is",
                default=DEFAULT,
                choices=(DEFAULT, STRICT),
            ),
            Parameter("ttl", "duration", "how long an object is kept without asking about it", 600.0, minimum=0),
            Parameter("admit", "int", "requests within the node's window before it is kept", 2, minimum=1, maximum=100),
        ),
        places=(PROXY,),
        default_place=PROXY,
        stage=50,
        on_put=False,
        on_request=True,
        methods=("GET", "HEAD", "PUT"),
        on_answer=True,
    )

    def visit(self, call: Call) -> Visit | None:
        cache = self.surroundings.cache
        return None if cache is None else cache.visit(call, self.params)
