"""Parsers of request bodies: strict JSON, whose every error is a 400, and raw bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser


class StrictJSONParser(BaseParser):
    """UTF-8 JSON; NaN, repeated names, half surrogate pairs and too deep nesting are refused."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Called by REST framework when a view first reads the body."""
        try:
            text = stream.read().decode("utf-8")
            parsed = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique) if text else {}
            if "\\ud" in text.lower():
                _refuse_surrogates(parsed)
            return parsed
        except RecursionError:
            raise ParseError("the body is nested too deeply") from None
        except ValueError as error:
            raise ParseError(f"the body is not valid JSON: {_lower(str(error))}") from error


class RawParser(BaseParser):
    """A body of any type, which the view reads from the stream."""

    media_type = "*/*"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Called by REST framework when a view reads ``data``; views with this parser do not."""
        return stream


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"`{word}` is not a JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"`{next(name for name in names if names.count(name) > 1)}` is given twice")
    return document


def _refuse_surrogates(document: Any) -> None:
    """Refuse texts with half a surrogate pair, which can be neither stored nor sent."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it contains half a surrogate pair, which is not a character") from None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
