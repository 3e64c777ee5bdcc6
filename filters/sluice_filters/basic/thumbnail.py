"""The filter that returns smaller pictures, in their own format.

A picture is decoded in the process of the host.  The list of formats is short, and the number of pixels is checked
before decoding, since a small file can describe a picture of many gigabytes.  The result has no metadata; the
orientation of the camera is applied to the pixels.
"""

from __future__ import annotations

import io
from typing import ClassVar, Final

from sluice_core.describe import FILTER, ActionInfo, Parameter
from sluice_core.messages.predicate import Facts, Test, compile_predicate
from sluice_filters.api import Filter, FilterError, Hint, Stream
from sluice_filters.pipe import MAX_SIZE, Collected

#: Formats of Pillow; of an animation only the first picture is saved.
FORMATS: Final = ("JPEG", "PNG", "GIF", "WEBP")
#: Extensions and media types of these formats, in the form of conditions on types.
_TYPES: Final = [
    *("jpg", "jpeg", "jpe", "png", "gif", "webp"),
    *("image/jpeg", "image/jpg", "image/pjpeg", "image/png", "image/gif", "image/webp"),
]
_MATCHES: Final[Test] = compile_predicate(["type", _TYPES])
#: Pixels of the largest picture, of up to four bytes each when they are decoded.
MOST_PIXELS: Final = 50_000_000


class Thumbnail(Filter):
    """Returns pictures that fit into a rectangle; smaller pictures are only encoded again."""

    info: ClassVar[ActionInfo] = ActionInfo(
        keyword="thumbnail",
        kind=FILTER,
        help="give JPEG, PNG, GIF and WebP pictures made smaller",
        parameters=(
            Parameter("width", "int", "pixels at most", 256, minimum=1, maximum=4096),
            Parameter("height", "int", "pixels at most", 256, minimum=1, maximum=4096),
            Parameter("quality", "int", "of JPEG and WebP", 85, minimum=1, maximum=95),
            MAX_SIZE,
        ),
        stage=180,
        on_put=False,
        on_get=True,
        changes_content=True,
        changes_length=True,
        needs_whole_object=True,
    )
    heavy: ClassVar[bool] = True
    reproducible: ClassVar[bool] = False

    def reads(self, hint: Hint) -> bool:
        return _MATCHES(Facts("GET", hint.name, hint.size, hint.content_type)) is True

    def reader(self, hint: Hint) -> Stream:
        return Collected(self.info.keyword, int(self.params["max_size"] or 0), self._convert)

    def _convert(self, data: bytes) -> bytes:
        """
        :raises FilterError: when it is not a picture of these formats, is damaged, or is too large
        """
        from PIL import Image, ImageOps  # imported by the worker that needs it

        box = (int(self.params["width"] or 0), int(self.params["height"] or 0))
        out = io.BytesIO()
        try:
            with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    raise Image.DecompressionBombError
                kind = picture.format
                picture.thumbnail(box)  # JPEG is decoded at a smaller scale
                small = ImageOps.exif_transpose(picture)
                small.thumbnail(box)  # rotated, width and height are exchanged
                for name in [name for name in small.info if name not in _KEPT]:
                    del small.info[name]
                small.save(out, kind, quality=int(self.params["quality"] or 0))
        except Image.DecompressionBombError as error:
            raise FilterError(f"`thumbnail` takes pictures of at most {MOST_PIXELS} pixels") from error
        except Exception as error:  # Pillow raises many types for damaged pictures
            raise FilterError("`thumbnail`: this is no JPEG, PNG, GIF or WebP picture, or a damaged one") from error
        return out.getvalue()


#: Properties that a picture needs for its display: the colour profile, and the transparent colour.
_KEPT: Final = frozenset({"icc_profile", "transparency", "background"})
