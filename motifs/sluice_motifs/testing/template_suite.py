"""The contract suite of templates.

Subclass and define the sources and the result; pytest finds the rest::

    class TestMine(TemplateContract):
        template = Mine
        params = {"source": "a"}
        contents = {"a": b"some bytes"}
        made = b"what they become"
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import ClassVar

import pytest

from sluice_core.describe import Scalar
from sluice_filters.api import check_parameters
from sluice_motifs.api import ExpansionError, SourceGone, Template
from sluice_motifs.templates.registry import unfit


class CallOfTest:
    """The arguments of a template; implements ``TemplateCall``.

    :param piece: bytes that a source returns at once
    :param own: bytes of the item itself; None: it has none, and they are unknown
    """

    def __init__(
        self, item: str, contents: Mapping[str, bytes], size: int, piece: int, own: bytes | None = None
    ) -> None:
        self.item = item
        self.size = size
        self.digest = "" if own is None else f"sha256:{hashlib.sha256(own).hexdigest()}"
        self.identity = "somebody"
        self.checks = 0
        self._contents = contents
        self._piece = piece
        self._own = own

    def read(self, source: str) -> Iterator[bytes]:
        if source not in self._contents:
            raise SourceGone(source)
        yield from self._cut(self._contents[source])

    def own_bytes(self) -> Iterator[bytes]:
        if self._own is None:
            raise ExpansionError("there are none")
        return self._cut(self._own)

    def keep_copy(self, placement: str = "", pieces: Iterator[bytes] | None = None) -> str:
        raise ExpansionError("there are no copies")

    def check(self) -> None:
        self.checks += 1

    def _cut(self, content: bytes) -> Iterator[bytes]:
        for begin in range(0, len(content), self._piece):
            yield content[begin : begin + self._piece]


class TemplateContract:
    """Every rule of ``sluice_motifs.api.Template``; ``made`` None: any result is accepted."""

    template: ClassVar[type[Template]]
    params: ClassVar[Mapping[str, Scalar]]
    contents: ClassVar[Mapping[str, bytes]]
    made: ClassVar[bytes | None] = None
    item: ClassVar[str] = "item"

    def expanded(self, piece: int, contents: Mapping[str, bytes]) -> bytes:
        given = check_parameters(self.template.info, self.params)
        template = self.template({name: value for name, value in given.items() if value is not None})
        size = 0 if self.made is None else len(self.made)
        return b"".join(template.expand(CallOfTest(self.item, contents, size, piece)))

    def test_it_can_be_used(self) -> None:
        assert unfit(self.template) == ""

    @pytest.mark.parametrize("piece", [1, 7, 1 << 20])
    def test_it_makes_its_item_however_sources_are_cut(self, piece: int) -> None:
        made = self.expanded(piece, self.contents)
        if self.made is not None:
            assert made == self.made
        elif self.template.exact:
            assert made == self.expanded(1 << 20, self.contents)

    def test_it_names_what_it_reads(self) -> None:
        named = {one.name for one in self.template(self.params).sources(self.item) if not one.external}
        assert named == set(self.contents)

    def test_a_source_that_is_gone_is_no_short_item(self) -> None:
        for name in self.contents:
            with pytest.raises(SourceGone):
                self.expanded(7, {one: content for one, content in self.contents.items() if one != name})
