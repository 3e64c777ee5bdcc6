"""Views of several objects, of which a limited number run concurrently."""

import pytest
from swift.common.concurrency import Event, Timeout

from sluice_core.errors import PeerError
from sluice_middleware.motifs.object_views import LOOKS_AT_ONCE, view_concurrently


def test_some_looks_are_under_way_at_a_time_and_what_they_find_stands_in_order():
    begun, all_begun = [], Event()

    def look(name):
        begun.append(name)
        if len(begun) == LOOKS_AT_ONCE:
            all_begun.send()
        all_begun.wait()
        return f"view of {name}"

    names = [f"o{number}" for number in range(LOOKS_AT_ONCE)]
    with Timeout(10):
        assert view_concurrently(look, names) == [f"view of {name}" for name in names]


def test_a_look_that_fails_fails_them_all():
    def look(name):
        if name == "away":
            raise PeerError("swift is away")

    with pytest.raises(PeerError, match="swift is away"):
        view_concurrently(look, ["there", "away", "there too"])
