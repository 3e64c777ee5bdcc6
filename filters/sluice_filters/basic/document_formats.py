"""JPEG and PDF without their metadata, by libraries that read and write these formats.

Pictures keep their pixels bit by bit, their colour profile and their orientation, without which they would be shown
turned.  PDFs keep their pages; document information, XMP packets of the document and of its parts, private data of the
programs that made it, thumbnails and the file's identifiers go.  The same input gives the same output.
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
            for item in document.objects:
                _drop_keys(item)
            out = io.BytesIO()
            document.save(out, static_id=True, normalize_content=False)
            return out.getvalue()
    except pikepdf.PasswordError as error:
        raise FilterError("the document is encrypted") from error
    except pikepdf.PdfError as error:
        raise FilterError("the document is damaged") from error


def _drop_keys(item: Any) -> None:
    import pikepdf

    if isinstance(item, pikepdf.Dictionary | pikepdf.Stream):
        for key in _PDF_KEYS:
            if key in item:
                del item[key]


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
