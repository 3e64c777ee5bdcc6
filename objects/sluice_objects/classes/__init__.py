"""The built-in classes."""

from __future__ import annotations

from typing import Final

from sluice_objects.api import ObjectClass
from sluice_objects.classes.counter import Counter
from sluice_objects.classes.lock import Lock
from sluice_objects.classes.log_stripe import LogStripe
from sluice_objects.classes.map import Map
from sluice_objects.classes.queue import Queue
from sluice_objects.classes.register import Register
from sluice_objects.classes.sequencer import Sequencer
from sluice_objects.classes.set import Set

#: Name of each class → its instance.
BUILT_IN: Final[dict[str, ObjectClass]] = {
    each.name: each for each in (Counter(), Lock(), LogStripe(), Map(), Queue(), Register(), Sequencer(), Set())
}
