"""The contract of decoders, as tests: what was stored comes back, damage is noticed, records are checked."""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_filters.api import FilterError
from sluice_filters.chain import Records
from sluice_filters.pipe import cut, run
from sluice_filters.testing.suite import FilterSuite, damaged, outcome

_SETTINGS: Final = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow]
)
_NONSENSE: Final[tuple[Any, ...]] = (None, -1, "", [], 1 << 70)


class DecodingContract(FilterSuite):
    """What a reversible filter promises of what it stores."""

    def test_the_record_is_small_json_and_knows_the_size(self) -> None:
        for data in self.samples:
            stored, records = self.coded(data)
            if not records:
                assert stored == data or not self.filter.info.reversible
                continue
            assert self.filter.info.reversible
            assert self.filter.plain_size(records[0]["r"]) == len(data)
            assert len(json.dumps(records)) < 2048

    def test_decoding_restores_the_object_however_it_is_cut(self) -> None:
        for data in self.samples:
            stored, records = self.coded(data)
            if not self.filter.info.reversible:
                assert not records
                continue
            for place in range(len(stored) + 1):
                assert run(self.decoded(records), [stored[:place], stored[place:]]) == data
            assert run(self.decoded(records), cut(stored, 1)) == data

    @_SETTINGS
    @given(data=st.binary(max_size=6000) | st.text("ab\n", max_size=9000).map(str.encode), step=st.integers(1, 4096))
    def test_encode_then_decode_is_identity(self, data: bytes, step: int) -> None:
        stored, records = self.coded(data)
        if self.filter.info.reversible:
            assert run(self.decoded(records), cut(stored, step)) == data

    def test_truncated_data_are_noticed_at_every_point(self) -> None:
        for _, stored, records in self._transformed():
            for length in range(len(stored)):
                assert outcome(self.decoded(records), stored[:length]) is None, length

    def test_appended_and_doubled_data_are_noticed(self) -> None:
        for _, stored, records in self._transformed():
            for more in (b"\0", stored[:1], stored):
                assert outcome(self.decoded(records), stored + more) is None

    def test_every_damaged_byte_is_noticed_or_harmless(self) -> None:
        if not self.checked:
            return
        for data, stored, records in self._transformed():
            for bad in damaged(stored):
                assert outcome(self.decoded(records), bad) in (None, data)

    def test_a_record_with_a_wrong_value_is_refused_or_harmless(self) -> None:
        for _, stored, records in self._transformed():
            inner = records[-1]["r"]
            for name in inner:
                for wrong in _NONSENSE:
                    bad = [*records[:-1], {**records[-1], "r": {**inner, name: wrong}}]
                    assert self._harmless(bad, stored, records), (name, wrong)

    def _harmless(self, bad: Records, stored: bytes, good: Records) -> bool:
        """Whether decoding with ``bad`` records is refused in our words, or gives the right bytes."""
        try:
            return run(self.decoded(bad), [stored]) == run(self.decoded(good), [stored])
        except FilterError:
            return True
