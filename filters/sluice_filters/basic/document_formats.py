"""JPEG and PDF without their metadata, by libraries that read and write these formats.

Pictures keep their pixels bit by bit, their colour profile and their orientation, without which they would be shown
turned.  PDFs keep their pages; document information, XMP packets of the document and of its parts, private data of the
programs that made it, thumbnails and the file's identifiers go, and JPEG pictures on pages are cleaned as others are.
The same input gives the same output.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from sluice_filters.stream import FilterError

#: Where the orientation of a picture stands: how it is shown, not who made it where.
_ORIENTATION: Final = "Exif.Image.Orientation"
_JPEG: Final = b"\xff\xd8\xff"
#: A reader accepts a PDF whose head stands within so many bytes.
_PDF_HEAD: Final = 1024
#: Keys of dictionaries in a PDF that hold nothing a page shows.
_PDF_KEYS: Final = ("/Metadata", "/PieceInfo", "/LastModified", "/Thumb")


def clean_jpeg(data: bytes) -> bytes:
    """The picture ``data`` without Exif, IPTC and XMP data and comments.

    :raises FilterError: when it is damaged
    """
    import exiv2

    try:
        image = exiv2.ImageFactory.open(data)
        image.readMetadata()
        found = image.exifData()
        position = found.findKey(exiv2.ExifKey(_ORIENTATION))
        orientation = None if position == found.end() else position.toString()
        image.clearMetadata()
        if orientation is not None:
            image.exifData()[_ORIENTATION] = orientation
        image.writeMetadata()
        source = image.io()
        source.open()
        try:
            return bytes(source.mmap())
        finally:
            source.munmap()
            source.close()
    except exiv2.Exiv2Error as error:
        raise FilterError("the picture is damaged") from error


def clean_pdf(data: bytes) -> bytes:
    """The document ``data`` without what it says of itself.

    :raises FilterError: when it is damaged, or encrypted
    """
    import pikepdf

    try:
        with pikepdf.open(io.BytesIO(data)) as document:
            if "/Info" in document.trailer:
                del document.trailer["/Info"]
            for item in list(document.objects):
                _clean_object(document, item)
            out = io.BytesIO()
            document.save(out, static_id=True, normalize_content=False)
            return out.getvalue()
    except pikepdf.PasswordError as error:
        raise FilterError("the document is encrypted") from error
    except pikepdf.PdfError as error:
        raise FilterError("the document is damaged") from error


def _clean_object(document: Any, item: Any) -> None:
    """Clean an object of a PDF, and what lies in it rather than being an object of its own."""
    import pikepdf

    waiting = [item]
    while waiting:
        part = waiting.pop()
        if isinstance(part, pikepdf.Dictionary | pikepdf.Stream):
            for key in _PDF_KEYS:
                if key in part:
                    del part[key]
            inner = [one for _, one in part.items()]
        elif isinstance(part, pikepdf.Array):
            inner = list(part)
        else:
            continue
        if isinstance(part, pikepdf.Stream):
            _clean_picture(document, part)
        waiting += [one for one in inner if isinstance(one, pikepdf.Object) and not one.is_indirect]


def _clean_picture(document: Any, stream: Any) -> None:
    """Clean the JPEG in ``stream``, if it holds one; filters around it are undone.

    :raises FilterError: when it is damaged
    """
    import pikepdf

    *outer, last = _as_list(stream.get("/Filter")) or [None]
    if last not in ("/DCTDecode", "/DCT"):
        return
    data, params = stream.read_raw_bytes(), _as_list(stream.get("/DecodeParms"))
    if outer:
        given = {} if not params else {"DecodeParms": pikepdf.Array(params[: len(outer)])}
        data = pikepdf.Stream(document, data, Filter=pikepdf.Array(outer), **given).read_bytes()
    stream.write(clean_jpeg(data), filter=last, decode_parms=params[len(outer)] if params else None)


def _as_list(value: Any) -> list[Any]:
    """One or several filters of a PDF stream, or their parameters."""
    import pikepdf

    if value is None:
        return []
    return list(value) if isinstance(value, pikepdf.Array) else [value]


def is_jpeg(data: bytes) -> bool:
    """Whether ``data`` begins as a JPEG picture."""
    return data.startswith(_JPEG)


def is_pdf(data: bytes) -> bool:
    """Whether ``data`` begins as a PDF document."""
    return b"%PDF-" in data[:_PDF_HEAD]


#: Media type → what recognizes such an object, and what cleans it.
FORMATS: Final[Mapping[str, tuple[Callable[[bytes], bool], Callable[[bytes], bytes]]]] = {
    "image/jpeg": (is_jpeg, clean_jpeg),
    "application/pdf": (is_pdf, clean_pdf),
}
