"""JPEG and PDF without their metadata, by libraries that read and write these formats.

Pictures keep their pixels bit by bit, their colour profile and their orientation, without which they would be shown
rotated.  PDFs keep their pages; document information, XMP packets of the document and of its parts, private data of
producing programs, thumbnails and file identifiers are removed, and JPEG pictures on pages are cleaned like others.
The same input gives the same output.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from sluice_filters.stream import FilterError

#: The EXIF tag of a picture's orientation, which is kept.
_ORIENTATION: Final = "Exif.Image.Orientation"
_JPEG: Final = b"\xff\xd8\xff"
#: A reader accepts a PDF whose header is within this number of bytes.
_PDF_HEAD: Final = 1024
#: Keys of PDF dictionaries that do not affect a page.
_PDF_KEYS: Final = ("/Metadata", "/PieceInfo", "/LastModified", "/Thumb")


def clean_jpeg(data: bytes) -> bytes:
    """Return the picture ``data`` without Exif, IPTC and XMP data and comments.

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
    """Return the document ``data`` without its metadata.

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
    """Clean an object of a PDF, and the direct objects in it."""
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
    """Clean the JPEG in ``stream``, if it holds one, below the stream's filters.

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
    """Return one or several filters of a PDF stream, or their parameters, as a list."""
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


#: Media type → a function that recognizes such an object, and one that cleans it.
FORMATS: Final[Mapping[str, tuple[Callable[[bytes], bool], Callable[[bytes], bytes]]]] = {
    "image/jpeg": (is_jpeg, clean_jpeg),
    "application/pdf": (is_pdf, clean_pdf),
}
