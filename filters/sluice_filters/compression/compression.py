"""The compression filter: independent frames with an index, so that the cost of a range depends on its length.

Stored uncompressed, without a record: empty and tiny objects, types that are compressed already, and
objects that do not shrink.  ``frames`` holds the codec of the stream, ``layout`` the arithmetic,
``engines`` the libraries; docs/reference/format-compression.md is the stored format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from sluice_core.describe import FILTER, PROXY, STORAGE_NODE, ActionInfo, Parameter, Range, Scalar
from sluice_core.messages.predicate import Facts, Test, compile_predicate
from sluice_filters.api import (
    Filter,
    FilterError,
    Hint,
    NeedIndex,
    Record,
    Stream,
    Transparent,
    Window,
)
from sluice_filters.compression.engines import ENGINES, LARGEST_FRAME
from sluice_filters.compression.frames import PROBE, FrameDecoder, FrameEncoder
from sluice_filters.compression.layout import choose_frame_size, complete_record, read_record

#: Types that are compressed already.  PDF and WAV are not here: many shrink, and the first bytes decide.
_COMPRESSED = """
7z aac apk avi avif br bz2 docx epub flac gif gz heic jar jpeg jpg lz4 lzma m4a m4v mkv mov mp3 mp4 mpeg mpg
odp ods odt ogg opus png pptx rar tbz2 tgz txz webm webp whl woff woff2 wma wmv xlsx xz zip zst zstd
image/avif image/gif image/heic image/jpeg image/png image/webp video/*
audio/aac audio/flac audio/mp4 audio/mpeg audio/ogg audio/opus audio/webm
application/gzip application/x-gzip application/zip application/zstd application/x-7z-compressed
application/x-bzip2 application/x-xz application/vnd.rar application/java-archive application/epub+zip
"""
COMPRESSED_TYPES: Final = tuple(_COMPRESSED.split())
_IS_COMPRESSED: Final[Test] = compile_predicate(["type", COMPRESSED_TYPES])


class Compression(Filter):
    """Stores objects compressed with gzip, lz4 or zstd."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="compression",
        kind=FILTER,
        help="store objects compressed; clients see them as they were",
        parameters=(
            Parameter("engine", "str", "codec", default="zstd", choices=tuple(ENGINES)),
            Parameter(
                "level",
                "int",
                "effort, higher is smaller and slower; "
                + ", ".join(f"{one.name} {one.lowest} to {one.highest} ({one.default})" for one in ENGINES.values()),
                range_by="engine",
                ranges=tuple(Range(one.name, one.lowest, one.highest) for one in ENGINES.values()),
            ),
            Parameter(
                "min_size", "size", "smaller objects are stored plain", default=4096, minimum=0, maximum=16 << 20
            ),
            Parameter(
                "min_gain",
                "percent",
                "objects whose first 256 KiB shrink by less are stored plain",
                default=0.05,
                minimum=0.0,
                maximum=0.99,
            ),
            Parameter(
                "types",
                "list",
                "extensions and media types to compress (pdf, text/plain, image/*); empty: all not compressed already",
                default="",
            ),
            Parameter(
                "frame_size",
                "size",
                "plain bytes per frame, what a small range costs; by default it grows with the object from 256 KiB",
                minimum=1024,
                maximum=LARGEST_FRAME,
            ),
        ),
        places=(PROXY, STORAGE_NODE),
        stage=300,
        changes_content=True,
        changes_length=True,
        reversible=True,
        random_access=True,
    )
    heavy: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False
    decides_within: ClassVar[int] = PROBE

    def __init__(self, params: Mapping[str, Scalar] | None = None) -> None:
        super().__init__(params)
        self._engine = ENGINES[str(self.params["engine"])]
        level = self.params["level"]
        self._level = self._engine.default if level is None else int(level)
        self._min_size = int(self.params["min_size"] or 0)
        self._min_gain = float(self.params["min_gain"] or 0)
        frame = self.params["frame_size"]
        self._frame = None if frame is None else int(frame)
        types = [word.strip() for word in str(self.params["types"] or "").split(",")]
        self._types = [word for word in types if word]
        self._matches: Test = compile_predicate(["type", self._types]) if self._types else _IS_COMPRESSED

    def applies(self, hint: Hint) -> bool:
        if hint.size is not None and hint.size < max(self._min_size, 1):
            return False
        matched = self._matches(Facts("PUT", hint.name, hint.size, hint.content_type))
        return matched is True if self._types else matched is not True

    def encoder(self, hint: Hint) -> Stream:
        if not self.applies(hint):
            return Transparent()
        frame = self._frame or choose_frame_size(hint.size)
        return FrameEncoder(self._engine, self._level, frame, self._min_size, self._min_gain)

    def writes(self, record: Record) -> bool:
        return record.get("engine") == self._engine.name

    def decoder(self, record: Record, window: Window | None = None) -> Stream:
        return FrameDecoder(read_record(record), window)

    def locate(self, record: Record, start: int, stop: int) -> Window | NeedIndex:
        layout = read_record(record)
        if layout.lengths is None:
            return NeedIndex(layout.frames_end, layout.stored)
        if not 0 <= start < stop <= layout.size:
            raise FilterError(f"bytes `{start}` to `{stop}` of {layout.size}")
        first, last = start // layout.frame, -(-stop // layout.frame)
        begin, end = layout.span(first, last)
        return Window(begin, end, start - first * layout.frame, stop - start, [first, last])

    def with_index(self, record: Record, index: bytes) -> Record:
        return complete_record(record, index)
