"""The lexical rules: what a bare word is, what must be quoted, and how quoting is written.

Grammar and printing share these, so that every node prints to text that parses to an equal node.
"""

from __future__ import annotations

import re
from typing import Final

#: Never names, parameter values or action keywords unless quoted, in any case.
RESERVED: Final = (
    "FOR", "WHEN", "SUSTAINED", "DO", "SET", "DELETE", "WITH", "ON", "TRANSIENT", "PERSISTENT",
    "AND", "OR", "NOT", "ALL", "CLUSTER", "TENANT", "CONTAINER", "OBJECT", "VOLUME", "GROUP",
)  # fmt: skip

#: One character of a bare word: no blank, control character, quote or sign of the language.
BARE: Final = r"[^\s\x00-\x1f\x7f\"'(),;=<>!#]"
_ESCAPE: Final = r"\\(?:[\"'\\nrt]|u\{(?:10[0-9A-Fa-f]{4}|[0-9A-Fa-f]{1,5})\})"
QUOTED: Final = rf"\"(?:[^\"\\\n]|{_ESCAPE})*\"|'(?:[^'\\\n]|{_ESCAPE})*'"
RESERVED_WORD: Final = rf"(?ai:{'|'.join(RESERVED)})(?!{BARE})"
#: Possessive, since a word must never be shortened to make the rest match.
WORD: Final = rf"(?!{RESERVED_WORD}){BARE}++"

_bare_word = re.compile(WORD)
_escape = re.compile(_ESCAPE)
_letters: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_signs: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}


def quote(text: str) -> str:
    """``text`` as it is written in a sentence: bare if it parses to the same text, else in quotes."""
    if _bare_word.fullmatch(text) and text.isprintable():
        return text
    return '"' + "".join(_signs.get(sign) or _visible(sign) for sign in text) + '"'


def _visible(sign: str) -> str:
    return sign if sign.isprintable() else f"\\u{{{ord(sign):x}}}"


def unquote(token: str) -> str:
    """Return the text of ``token``, a bare word or a quoted one."""
    if token[:1] not in ("'", '"'):
        return token
    return _escape.sub(_unescape, token[1:-1])


def _unescape(match: re.Match[str]) -> str:
    body = match[0][1:]
    return chr(int(body[2:-1], 16)) if body.startswith("u{") else _letters[body]
