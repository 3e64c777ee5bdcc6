"""The options of ``spark.read.format("sluice")``; Spark gives them as strings, their names in any case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

NAMES: Final = {
    "path": "container, container/object or container/prefix; what load() is given",
    "url": "storage URL, like http://proxy:8080/v1/AUTH_test; needs token",
    "token": "X-Auth-Token for url",
    "auth_url": "where to log in by TempAuth's version 1, like http://proxy:8080/auth/v1.0; needs user and key",
    "user": "for auth_url",
    "key": "for auth_url",
    "columns": "columns to read, separated by commas; by default those of the schema",
    "where": "one more condition that rows must meet, in the words of X-Csv-Select",
    "header": "true: the first record of each object holds names; false: columns are _1, _2, ...",
    "delimiter": "what separates fields",
    "quote": "what encloses fields",
    "multiLine": "true: line ends inside quotes are data; each task then makes the store read from the beginning",
    "inferSchema": "true: guess types from the beginning of the first object; false: all are strings",
    "partitionBytes": "bytes of an object that one task reads",
    "timeout": "seconds without an answer",
}
#: Options whose names are spelled differently here.
_SPELLED: Final = {"multiline": "multiLine", "infer": "inferSchema", "partition_bytes": "partitionBytes"}
_TRUTH: Final = {"true": True, "false": False}
_LEAST: Final = {"partitionBytes": 1024}


class SluiceReadError(Exception):
    """The options are invalid, or the store does not return the requested data."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one data frame."""

    path: str
    url: str = ""
    token: str = ""
    auth_url: str = ""
    user: str = ""
    key: str = ""
    columns: tuple[str, ...] = ()
    where: str = ""
    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    multiline: bool = False
    infer: bool = False
    partition_bytes: int = 32 << 20
    timeout: float = 60.0

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Parse the options that Spark passes.

        :raises SluiceReadError: for unknown options and bad values
        """
        folded = {name.lower(): str(value) for name, value in given.items()}
        unknown = sorted(folded.keys() - {name.lower() for name in NAMES})
        if unknown:
            raise SluiceReadError(f"no option `{unknown[0]}`, expected some of {', '.join(NAMES)}")
        if not folded.get("path", "").strip("/"):
            raise SluiceReadError("no path: load() wants container, container/object or container/prefix")
        values = {}
        for field in fields(cls):
            name = _SPELLED.get(field.name, field.name)
            if name.lower() in folded:
                values[field.name] = _parse(name, folded[name.lower()], field.default)
        options = cls(**values)
        if not (options.url and options.token) and not (options.auth_url and options.user and options.key):
            raise SluiceReadError("options url and token are needed, or auth_url, user and key")
        return options


def _parse(name: str, text: str, default: Any) -> Any:
    """Return the value of an option, of the type of its default."""
    if isinstance(default, bool):
        if text.lower() not in _TRUTH:
            raise SluiceReadError(f"option `{name}` is `{text}`, expected true or false")
        return _TRUTH[text.lower()]
    if isinstance(default, int | float):
        least = _LEAST.get(name, 1)
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise SluiceReadError(f"option `{name}` is `{text}`, expected a whole number from {least}")
        return int(text)
    if isinstance(default, tuple):
        return tuple(word.strip() for word in text.split(",") if word.strip())
    return text.strip("/") if name == "path" else text.rstrip("/") if name == "url" else text
