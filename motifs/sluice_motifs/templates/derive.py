"""An item that a stream filter makes from others: a selection, an average, an encoded form.

A filter that works on reads is used as on a GET, any other as on a PUT; the records of the latter for its
decoder are not kept, so its output should be readable without them.

An uploaded filter runs in its isolated environment, for the identity that attached the motif; sources are streamed in,
the item is streamed out.  The motif names the revision by its code, which its owner has accepted so, and keeps it when
another revision is rolled out, which might make other bytes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_core.errors import NotFound
from sluice_filters.api import BadParameter, Filter, Hint, Stream, parse_parameter
from sluice_filters.registry import load_filters
from sluice_motifs.api import Source, Template, TemplateCall


class Derive(Template):
    """Passes its concatenated sources through a filter."""

    info = ActionInfo(
        "derive",
        MOTIF,
        "the output of a filter on other items",
        (
            Parameter("of", "list", "the items, separated by commas", required=True),
            Parameter("filter", "str", "keyword of the filter", required=True),
            Parameter("code", "str", "of an uploaded filter: SHA-256 of its code", ""),
            Parameter("options", "list", "parameters of the filter: name=value, separated by commas", ""),
        ),
    )

    def check(self) -> None:
        self._filter()

    def is_exact(self) -> bool:
        """Uploaded code is named by its digest and counts as exact."""
        kind = None if self.params.get("code") else _filters().get(str(self.params["filter"]))
        return kind is None or kind.reproducible

    def sources(self, item: str) -> Sequence[Source]:
        return [Source(name) for name in str(self.params["of"]).split(",")]

    def expand(self, call: TemplateCall) -> Iterator[bytes]:
        stream = self._stream(call)
        for source in self.sources(call.item):
            for piece in call.read(source.name):
                yield stream.feed(piece)
                while stream.behind:
                    yield stream.more()
        yield stream.finish()

    def _stream(self, call: TemplateCall) -> Stream:
        chosen = self._filter()
        hint = Hint(name=call.item, account=call.identity)
        return chosen.reader(hint) if chosen.info.on_get else chosen.encoder(hint)

    def _filter(self) -> Filter:
        """
        :raises SluiceError: when the filter is not available, or not with these options
        """
        keyword, code = str(self.params["filter"]), str(self.params.get("code", ""))
        kind = self.context.uploaded_filter(keyword, code)
        if kind is None and not code:
            kind = _filters().get(keyword)
        if kind is None:
            near = difflib.get_close_matches(keyword, _filters(), 1)
            hint = f", did you mean `{near[0]}`" if near else ""
            raise NotFound(f"no filter `{keyword}` is {'uploaded' if code else 'installed'}{hint}")
        return kind(_options(kind, str(self.params.get("options", ""))))


@cache
def _filters() -> Mapping[str, type[Filter]]:
    return load_filters()


def _options(kind: type[Filter], text: str) -> dict[str, Scalar]:
    """
    :raises BadParameter: when they are no names and values of the filter's types
    """
    options: dict[str, Scalar] = {}
    for option in filter(None, text.split(",")):
        name, equals, value = option.partition("=")
        parameter = kind.info.parameter(name)
        if not equals or parameter is None:
            raise BadParameter(f"filter `{kind.info.keyword}` has no parameter `{name}`, expected name=value")
        options[parameter.name] = parse_parameter(parameter, value)
    return options
