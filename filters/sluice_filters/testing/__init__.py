"""The contract suite: what every filter must pass, ours and a stranger's.

Subclass and name your filter; pytest finds the rest::

    class TestMyFilter(FilterContract):
        filter = MyFilter
        params = {"strength": 3}

Give ``samples`` that are short (some hundred bytes), since they are cut and damaged at every place,
and that cross the filter's own boundaries.  Needs hypothesis.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_core.describe import PLACES, Scalar
from sluice_filters.api import BadParameter, CorruptData, Filter, FilterError, Hint, Stream, Window
from sluice_filters.chain import ChainEncoder, Records, chain_decoder, chain_reader, locate

_MIXIN: Final = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow]
)
#: Stored bytes and their records.
Coded = tuple[bytes, tuple[dict[str, Any], ...]]
_NONSENSE: Final[tuple[Any, ...]] = (None, -1, "", [], 1 << 70)
#: Wrong values for each parameter type.
_WRONG: Final[dict[str, Scalar]] = {"str": 1, "list": 1, "bool": "yes"}


def run(stream: Stream, pieces: Iterable[bytes]) -> bytes:
    """All output of ``stream`` for ``pieces`` (empty ones are not fed) and ``finish``."""
    out = [stream.feed(piece) for piece in pieces if piece]
    out.append(stream.finish())
    return b"".join(out)


def cut(data: bytes, size: int) -> Iterator[bytes]:
    """``data`` in pieces of ``size``."""
    return (data[begin : begin + size] for begin in range(0, len(data), size))


def damaged(data: bytes) -> Iterator[bytes]:
    """``data`` with one byte changed, at every place: one bit, then all of them."""
    for place in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            yield data[:place] + bytes((data[place] ^ mask,)) + data[place + 1 :]


def encode(filters: Iterable[Filter], data: bytes, hint: Hint | None = None) -> Coded:
    """``data`` through the encoders of ``filters``: stored bytes and records, as they come back from JSON."""
    chain = ChainEncoder(list(filters), hint or Hint(len(data)))
    stored = run(chain, [data])
    return stored, tuple(json.loads(json.dumps(chain.records())))


def read_range(stored: bytes, records: Records, known: Mapping[str, type[Filter]], start: int, stop: int) -> bytes:
    """The plain bytes ``[start, stop)`` by random access, fetching what it asks for out of ``stored``."""
    search = locate(records, known, start, stop)
    try:
        begin, end = next(search)
        while True:
            begin, end = search.send(stored[begin:end])
    except StopIteration as done:
        found = done.value
    return run(found.stream, cut(stored[found.start : found.stop], 7))


def outcome(stream: Stream, data: bytes) -> bytes | None:
    """The output, or None when the damage was noticed; any other exception is a fault."""
    try:
        return run(stream, [data])
    except CorruptData:
        return None


class FilterContract:
    """Every promise of ``sluice_filters.api``, as tests; what does not apply passes trivially."""

    filter: ClassVar[type[Filter]]
    params: ClassVar[Mapping[str, Scalar]] = {}
    hint: ClassVar[Hint] = Hint()
    #: True when the stored bytes are protected by checksums.
    checked: ClassVar[bool] = True
    #: False when two encoders of the same bytes differ (a salt, a nonce).
    repeatable: ClassVar[bool] = True
    samples: ClassVar[tuple[bytes, ...]] = (b"", b"x", b"the quick brown fox " * 20, bytes(range(256)))

    def make(self) -> Filter:
        """A new instance, configured as in a policy."""
        return self.filter(self.params)

    def coded(self, data: bytes) -> Coded:
        """Stored bytes and records of ``data``."""
        return encode([self.make()], data, self.hint_of(data))

    def hint_of(self, data: bytes) -> Hint:
        """What a host would know of ``data`` beforehand."""
        return replace(self.hint, size=len(data))

    def reader(self, hint: Hint) -> Stream:
        """The read-time transform, as a host runs it."""
        return chain_reader([self.make()], hint)

    def decoded(self, records: Records) -> Stream:
        """A decoder for ``records`` that knows nothing of the policy's parameters."""
        return chain_decoder(records, {self.filter.info.keyword: self.filter})

    def test_describes_itself_consistently(self) -> None:
        info = self.filter.info
        assert info.keyword == info.keyword.lower()
        assert info.keyword.replace("_", "").isalnum()
        assert info.help
        assert info.default_place in info.places
        assert set(info.places) <= set(PLACES)
        assert info.on_put or info.on_get or info.on_request
        assert info.reversible or not info.random_access
        assert info.changes_content or not (info.changes_length or info.reversible)

    def test_a_reversible_filter_needs_no_parameters(self) -> None:
        if self.filter.info.reversible:
            assert isinstance(self.filter(), Filter)

    def test_unknown_parameters_are_refused(self) -> None:
        assert self._refused({"no_such_parameter": 1})

    def test_values_of_a_wrong_type_or_out_of_range_are_refused(self) -> None:
        for parameter in self.filter.info.parameters:
            assert self._refused({parameter.name: _WRONG.get(parameter.type, "many")}), parameter.name
            if parameter.choices:
                assert self._refused({parameter.name: "no such choice"}), parameter.name
            for bound, step in ((parameter.minimum, -1), (parameter.maximum, 1)):
                if bound is not None:
                    assert self._refused({parameter.name: bound + step}), parameter.name

    def test_how_the_input_is_cut_does_not_change_the_output(self) -> None:
        for data in self.samples:
            whole = self.coded(data)
            for place in range(len(data) + 1):
                assert self._same(self._cut_encoded(data, [data[:place], data[place:]]), whole)
            assert self._same(self._cut_encoded(data, cut(data, 1)), whole)

    def test_streams_of_one_instance_know_nothing_of_each_other(self) -> None:
        shared = self.make()
        pair = [data for data in self.samples if data][-2:]
        chains = [ChainEncoder([shared], self.hint_of(data)) for data in pair]
        out = [chain.feed(data[:1]) for chain, data in zip(chains, pair, strict=True)]
        for at, (chain, data) in enumerate(zip(chains, pair, strict=True)):
            out[at] += (chain.feed(data[1:]) if data[1:] else b"") + chain.finish()
        for chain, data, stored in zip(chains, pair, out, strict=True):
            records = tuple(json.loads(json.dumps(chain.records())))
            assert self._same((stored, records), self.coded(data))

    def test_what_calls_itself_transparent_or_not_applicable_changes_nothing(self) -> None:
        for data in self.samples:
            hint = self.hint_of(data)
            stream = self.make().encoder(hint)
            out = run(stream, [data])
            if stream.transparent or not self.make().applies(hint):
                assert (out, stream.record()) == (data, None)

    def test_who_was_transparent_once_has_given_everything_back_and_stays_so(self) -> None:
        for data in self.samples:
            chain = ChainEncoder([self.make()], self.hint_of(data))
            out, known = b"", chain.settled()
            for place in range(len(data)):
                out += chain.feed(data[place : place + 1])
                assert chain.settled() or not known
                assert known or not chain.settled() or place < self.filter.decides_within
                known = chain.settled()
                assert not known or out == data[: place + 1]
            out += chain.finish()
            assert not known or (chain.settled() and out == data and not chain.records())

    def test_an_encoder_wants_all_of_its_input(self) -> None:
        """One that were done early would make the rest of the object vanish."""
        for data in self.samples:
            chain = ChainEncoder([self.make()], self.hint_of(data))
            for piece in cut(data, 1):
                chain.feed(piece)
                assert not chain.done

    def test_how_an_answer_is_cut_does_not_change_what_is_read(self) -> None:
        if not self.filter.info.on_get:
            return
        for data in self.samples:
            hint = self.hint_of(data)
            whole = run(self.reader(hint), [data])
            assert self.make().reads(hint) or whole == data
            for place in range(0, len(data) + 1, 1 if self.filter.team is None else 1 + len(data) // 3):
                assert run(self.reader(hint), [data[:place], data[place:]]) == whole, place
            assert run(self.reader(hint), cut(data, 1)) == whole

    def test_a_reader_that_is_done_needs_nothing_more(self) -> None:
        if not self.filter.info.on_get:
            return
        for data in self.samples:
            hint = self.hint_of(data)
            stream = self.reader(hint)
            out = b""
            for piece in cut(data, 1):
                out += stream.feed(piece)
                if stream.done:
                    break
            assert out + stream.finish() == run(self.reader(hint), [data])

    def test_the_record_is_small_json_and_knows_the_size(self) -> None:
        for data in self.samples:
            stored, records = self.coded(data)
            if not records:
                assert stored == data or not self.filter.info.reversible
                continue
            assert self.filter.info.reversible
            assert self.filter.plain_size(records[0]["r"]) == len(data)
            assert len(json.dumps(records)) < 2048

    def test_decoding_gives_back_what_was_encoded_however_it_is_cut(self) -> None:
        for data in self.samples:
            stored, records = self.coded(data)
            if not self.filter.info.reversible:
                assert not records
                continue
            for place in range(len(stored) + 1):
                assert run(self.decoded(records), [stored[:place], stored[place:]]) == data
            assert run(self.decoded(records), cut(stored, 1)) == data

    @_MIXIN
    @given(data=st.binary(max_size=6000) | st.text("ab\n", max_size=9000).map(str.encode), step=st.integers(1, 4096))
    def test_encode_then_decode_is_identity(self, data: bytes, step: int) -> None:
        stored, records = self.coded(data)
        if self.filter.info.reversible:
            assert run(self.decoded(records), cut(stored, step)) == data

    def test_truncated_data_are_noticed_at_every_point(self) -> None:
        for stored, records in self._transformed():
            for length in range(len(stored)):
                assert outcome(self.decoded(records), stored[:length]) is None, length

    def test_appended_and_doubled_data_are_noticed(self) -> None:
        for stored, records in self._transformed():
            for more in (b"\0", stored[:1], stored):
                assert outcome(self.decoded(records), stored + more) is None

    def test_every_damaged_byte_is_noticed_or_harmless(self) -> None:
        if not self.checked:
            return
        for data in self.samples:
            stored, records = self.coded(data)
            if not records:
                continue
            for bad in damaged(stored):
                assert outcome(self.decoded(records), bad) in (None, data)

    def test_a_record_that_is_none_of_ours_is_refused(self) -> None:
        for stored, records in self._transformed():
            inner = records[-1]["r"]
            for name in inner:
                for wrong in _NONSENSE:
                    bad = [*records[:-1], {**records[-1], "r": {**inner, name: wrong}}]
                    assert self._harmless(bad, stored, records), (name, wrong)

    def test_random_access_is_right_at_every_boundary(self) -> None:
        if not self.filter.info.random_access:
            return
        known = {self.filter.info.keyword: self.filter}
        for data in self.samples:
            stored, records = self.coded(data)
            if not records:
                continue
            for start, stop in ranges(len(data)):
                assert read_range(stored, records, known, start, stop) == data[start:stop], (start, stop)

    def test_damage_inside_a_window_is_noticed_or_harmless(self) -> None:
        if not (self.checked and self.filter.info.random_access):
            return
        for data in self.samples:
            stored, records = self.coded(data)
            if not records:
                continue
            start, stop = len(data) // 3, len(data) // 3 + 1
            for place in range(0, len(stored), 1 + len(stored) // 100):
                bad = stored[:place] + bytes((stored[place] ^ 0x10,)) + stored[place + 1 :]
                try:
                    found = read_range(bad, records, {self.filter.info.keyword: self.filter}, start, stop)
                except CorruptData:
                    continue
                assert found == data[start:stop]

    def test_windows_are_inside_and_hold_the_range(self) -> None:
        if not self.filter.info.random_access:
            return
        for stored, records in self._transformed():
            size = self.filter.plain_size(records[0]["r"])
            where = self.make().locate(records[0]["r"], 0, size) if size else None
            if isinstance(where, Window):
                assert 0 <= where.start < where.stop <= len(stored)
                assert where.length == size

    def _refused(self, params: Mapping[str, Scalar]) -> bool:
        try:
            self.filter({**self.params, **params})
        except BadParameter as error:
            return all(name in str(error) for name in params)
        return False

    def _cut_encoded(self, data: bytes, pieces: Iterable[bytes]) -> Coded:
        chain = ChainEncoder([self.make()], self.hint_of(data))
        stored = run(chain, pieces)
        return stored, tuple(json.loads(json.dumps(chain.records())))

    def _same(self, one: Coded, other: Coded) -> bool:
        """Whether both are the same encoding, or as alike as two that differ by chance can be."""
        if self.repeatable:
            return one == other
        plain = [run(self.decoded(records), [stored]) if records else stored for stored, records in (one, other)]
        return len(one[0]) == len(other[0]) and plain[0] == plain[1]

    def _transformed(self) -> Iterator[Coded]:
        """Stored bytes and records of the samples that were changed."""
        return (pair for pair in map(self.coded, self.samples) if pair[1])

    def _harmless(self, bad: Records, stored: bytes, good: Records) -> bool:
        """Whether decoding with ``bad`` records is refused in our words, or gives the right bytes."""
        try:
            return run(self.decoded(bad), [stored]) == run(self.decoded(good), [stored])
        except FilterError:
            return True


def ranges(size: int) -> Iterator[tuple[int, int]]:
    """Ranges of ``size`` bytes: single bytes, halves, everything, and around powers of two."""
    marks = {0, 1, size // 3, size // 2, size - 1, size}
    for power in range(4, size.bit_length()):
        marks.update(range((1 << power) - 1, (1 << power) + 2))
        marks.update(range(3 * (1 << power) - 1, 3 * (1 << power) + 2))
    places = sorted(mark for mark in marks if 0 <= mark <= size)
    return ((start, stop) for start in places for stop in places if start < stop)
