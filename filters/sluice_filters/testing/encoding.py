"""The contract of descriptions, parameters, encoders and readers, as tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from sluice_core.describe import PLACES, Scalar
from sluice_filters.api import BadParameter, Filter
from sluice_filters.chain import ChainEncoder
from sluice_filters.pipe import cut, run
from sluice_filters.testing.suite import FilterSuite

#: Wrong values for each parameter type.
_WRONG: Final[dict[str, Scalar]] = {"str": 1, "list": 1, "bool": "yes"}


class EncodingContract(FilterSuite):
    """The contract of every filter for its description, on PUT and at reading time."""

    def test_the_description_is_consistent(self) -> None:
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

    def test_streams_of_one_instance_are_independent(self) -> None:
        shared = self.make()
        pair = [data for data in self.samples if data][-2:]
        chains = [ChainEncoder([shared], self.hint_of(data)) for data in pair]
        out = [chain.feed(data[:1]) for chain, data in zip(chains, pair, strict=True)]
        for at, (chain, data) in enumerate(zip(chains, pair, strict=True)):
            out[at] += (chain.feed(data[1:]) if data[1:] else b"") + chain.finish()
        for chain, data, stored in zip(chains, pair, out, strict=True):
            records = tuple(json.loads(json.dumps(chain.records())))
            assert self._same((stored, records), self.coded(data))

    def test_a_transparent_or_inapplicable_encoder_changes_nothing(self) -> None:
        for data in self.samples:
            hint = self.hint_of(data)
            stream = self.make().encoder(hint)
            out = run(stream, [data])
            if stream.transparent or not self.make().applies(hint):
                assert (out, stream.record()) == (data, None)

    def test_a_transparent_encoder_has_passed_on_every_byte_and_stays_transparent(self) -> None:
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

    def test_an_encoder_is_never_done_before_the_end(self) -> None:
        """An early end would lose the rest of the object."""
        for data in self.samples:
            chain = ChainEncoder([self.make()], self.hint_of(data))
            for piece in cut(data, 1):
                chain.feed(piece)
                assert not chain.done

    def test_how_an_object_is_cut_does_not_change_what_a_reader_gives(self) -> None:
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

    def _refused(self, params: Mapping[str, Scalar]) -> bool:
        try:
            self.filter({**self.params, **params})
        except BadParameter as error:
            return all(name in str(error) for name in params)
        return False
