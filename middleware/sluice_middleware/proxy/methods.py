"""Which methods an object's controller has, found once for each class.

Swift's proxy makes a controller for each request and looks through all of its attributes for those that are methods
of HTTP (``swift/proxy/controllers/base.py``, ``allowed_methods``): 6 % of a proxy's time for a small download.  The
answer is the same for all objects of one class.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any


@functools.cache
def with_cached_methods(kind: type[Any]) -> type[Any]:
    """The same class, whose objects know their methods.

    Not for account controllers, which take some away from themselves.
    """
    members = inspect.getmembers(kind, inspect.isfunction)
    names = frozenset(name for name, one in members if getattr(one, "publicly_accessible", False))
    return type(kind.__name__, (kind,), {"allowed_methods": property(lambda _: set(names))})
