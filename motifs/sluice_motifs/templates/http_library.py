"""httpcore without its support of trio.

It imports trio where that is installed.  That fails in a process whose sockets are eventlet's, as those of Swift are,
and nobody here needs it.
"""

from __future__ import annotations

import sys

_trio = sys.modules.get("trio")
sys.modules["trio"] = None  # type: ignore[assignment]  # an import of it is an ImportError now
try:
    import httpcore
finally:
    del sys.modules["trio"]
    if _trio is not None:
        sys.modules["trio"] = _trio

__all__ = ["httpcore"]
