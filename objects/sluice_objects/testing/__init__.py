"""The contract suite, which every class must pass, built-in or uploaded, and a home in memory.

Subclass, name your class, and give calls that succeed one after the other on a new object::

    class TestMatrix(ClassContract):
        object_class = Matrix
        calls = (("set", {"row": 1, "column": 2, "value": 3.5}), ("get", {"row": 1, "column": 2}))

:class:`LocalHome` runs the calls of your own tests.  Needs pytest.
"""

from __future__ import annotations

from sluice_objects.testing.contract import ClassContract
from sluice_objects.testing.local_home import LocalHome, NotDone

__all__ = ["ClassContract", "LocalHome", "NotDone"]
