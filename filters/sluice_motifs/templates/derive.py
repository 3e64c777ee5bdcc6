"""An item that a stream filter makes out of others: a selection, an average, an encoded form.

A filter that works on reads is used as on a GET, any other as on a PUT; what the latter leaves beside an object for its
decoder is not kept, so it should make what somebody else can read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from sluice_core.describe import MOTIF, ActionInfo, Parameter, Scalar
from sluice_filters.api import BadParameter, Filter, Hint, Stream
from sluice_filters.registry import load_filters
from sluice_motifs.api import ExpansionError, Source, Template, TemplateCall

#: Makes a value of its text, by the type of a parameter; other types are texts.
_READERS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "int": int,
    "size": int,
    "float": float,
    "bool": lambda text: text == "true",
}


class Derive(Template):
    """Passes its sources, one behind the other, through a filter."""

    info = ActionInfo(
        "derive",
        MOTIF,
        "what a filter makes of other items",
        (
            Parameter("of", "list", "the items, separated by commas", required=True),
            Parameter("filter", "str", "keyword of the filter", required=True),
            Parameter("options", "list", "parameters of the filter: name=value, separated by commas", ""),
        ),
    )

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
        keyword = str(self.params["filter"])
        kind = _filters().get(keyword)
        if kind is None:
            raise ExpansionError(f"no filter `{keyword}` is installed")
        chosen = kind(_options(kind, str(self.params.get("options", ""))))
        hint = Hint(name=call.item)
        return chosen.reader(hint) if chosen.info.on_get else chosen.encoder(hint)


@cache
def _filters() -> Mapping[str, type[Filter]]:
    return load_filters()


def _options(kind: type[Filter], text: str) -> dict[str, Scalar]:
    """
    :raises BadParameter: when they are not written as names and values of the filter's types
    """
    options: dict[str, Scalar] = {}
    for option in filter(None, text.split(",")):
        name, equals, value = option.partition("=")
        parameter = kind.info.parameter(name)
        if not equals or parameter is None:
            raise BadParameter(f"filter `{kind.info.keyword}` has no parameter `{name}`, expected name=value")
        try:
            options[parameter.name] = _READERS.get(parameter.type, str)(value)
        except ValueError as error:
            raise BadParameter(f"`{name}` is `{value}`, expected a {parameter.type}") from error
    return options
