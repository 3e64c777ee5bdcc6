"""The options of ``spark.read.format("sluice")``; Spark gives them as strings, their names in any case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from sluice_spark.errors import SluiceReadError

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
_TRUTH: Final = {"true": True, "false": False}


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
    def of(cls, given: Mapping[str, str]) -> Self:
        """
        :raises SluiceReadError: for unknown options and bad values
        """
        folded = {name.lower(): str(value) for name, value in given.items()}
        unknown = sorted(folded.keys() - {name.lower() for name in NAMES})
        if unknown:
            raise SluiceReadError(f"no option `{unknown[0]}`, expected some of {', '.join(NAMES)}")
        path = folded.get("path", "").strip("/")
        if not path:
            raise SluiceReadError("no path: load() wants container, container/object or container/prefix")
        found = cls(
            path=path,
            url=folded.get("url", "").rstrip("/"),
            token=folded.get("token", ""),
            auth_url=folded.get("auth_url", ""),
            user=folded.get("user", ""),
            key=folded.get("key", ""),
            columns=tuple(name.strip() for name in folded.get("columns", "").split(",") if name.strip()),
            where=folded.get("where", ""),
            header=_truth(folded, "header", True),
            delimiter=folded.get("delimiter", ","),
            quote=folded.get("quote", '"'),
            multiline=_truth(folded, "multiLine", False),
            infer=_truth(folded, "inferSchema", False),
            partition_bytes=int(_number(folded, "partitionBytes", 32 << 20, 1024)),
            timeout=_number(folded, "timeout", 60.0),
        )
        if not (found.url and found.token) and not (found.auth_url and found.user and found.key):
            raise SluiceReadError("options url and token are needed, or auth_url, user and key")
        return found


def _truth(given: Mapping[str, str], name: str, default: bool) -> bool:
    value = given.get(name.lower())
    if value is None:
        return default
    if value.lower() not in _TRUTH:
        raise SluiceReadError(f"option `{name}` is `{value}`, expected true or false")
    return _TRUTH[value.lower()]


def _number(given: Mapping[str, str], name: str, default: float, least: int = 1) -> float:
    value = given.get(name.lower())
    if value is None:
        return default
    if not value.isascii() or not value.isdigit() or int(value) < least:
        raise SluiceReadError(f"option `{name}` is `{value}`, expected a whole number from {least}")
    return int(value)
