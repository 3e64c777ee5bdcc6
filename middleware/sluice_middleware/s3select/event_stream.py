"""The answer to SelectObjectContent: messages of the event stream encoding.

A message is: its length and that of its headers (4 bytes each, big endian), CRC-32 of these, headers, payload,
CRC-32 of all before.  A header is: length of its name (1 byte), name, 7 for text, length of the value
(2 bytes), value.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

#: Bytes of records in one message; S3 sends at most 1 MiB.
LARGEST: Final = 256 * 1024
_TEXT: Final = 7
#: Characters of an error's reason.
_LONGEST: Final = 4000


def message(headers: Mapping[str, str], payload: bytes = b"") -> bytes:
    """One message."""
    block = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", 16 + len(block) + len(payload), len(block))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + block + payload
    return start + struct.pack(">I", zlib.crc32(start))


def _header(name: str, value: str) -> bytes:
    encoded = value.encode()
    return bytes((len(name),)) + name.encode() + struct.pack(">BH", _TEXT, len(encoded)) + encoded


def _event(kind: str, payload: bytes = b"", content_type: str = "") -> bytes:
    headers = {":message-type": "event", ":event-type": kind}
    if content_type:
        headers[":content-type"] = content_type
    return message(headers, payload)


def records(data: bytes) -> Iterator[bytes]:
    """Selected records, in as many messages as they need."""
    for place in range(0, len(data), LARGEST):
        yield _event("Records", data[place : place + LARGEST], "application/octet-stream")


def keep_alive() -> bytes:
    """Says that something is still being read."""
    return _event("Cont")


def figures(kind: str, scanned: int, processed: int, returned: int) -> bytes:
    """Bytes read, bytes after decompression, bytes of records.

    :param kind: ``Progress`` on the way, ``Stats`` at the end
    """
    inner = (
        f"<BytesScanned>{scanned}</BytesScanned><BytesProcessed>{processed}</BytesProcessed>"
        f"<BytesReturned>{returned}</BytesReturned>"
    )
    text = f'<?xml version="1.0" encoding="UTF-8"?><{kind}>{inner}</{kind}>'
    return _event(kind, text.encode(), "text/xml")


def end() -> bytes:
    """The last message; without it the answer is not complete."""
    return _event("End")


def failure(code: str, text: str) -> bytes:
    """Something went wrong after the answer began."""
    return message({":message-type": "error", ":error-code": code, ":error-message": text[:_LONGEST]})
