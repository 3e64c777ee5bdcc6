"""The filter that gives pictures made smaller, in the format that they have.

A picture is decoded in the process of the host.  Its formats are few, and its pixels are counted before one of them is
decoded, since some bytes can describe a picture of many gigabytes.  The result has no metadata; a picture that a camera
has turned is turned back.
"""

from __future__ import annotations

import io
from typing import ClassVar, Final

from sluice_core.describe import FILTER, ActionInfo, Parameter
from sluice_core.messages.predicate import Facts, Test, compile_predicate
from sluice_filters.api import Filter, FilterError, Hint, Stream
from sluice_filters.pipe import MAX_SIZE, Collected

#: Of Pillow; what is saved of an animation is its first picture.
FORMATS: Final = ("JPEG", "PNG", "GIF", "WEBP")
#: Extensions and media types of these, as conditions on types have them.
_TYPES: Final = [
    *("jpg", "jpeg", "jpe", "png", "gif", "webp"),
    *("image/jpeg", "image/jpg", "image/pjpeg", "image/png", "image/gif", "image/webp"),
]
_MATCHES: Final[Test] = compile_predicate(["type", _TYPES])
#: Pixels of the largest picture, of up to four bytes each when they are decoded.
MOST_PIXELS: Final = 50_000_000


class Thumbnail(Filter):
    """Gives pictures that fit into a rectangle; those that do already are only written anew."""

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
        :raises FilterError: when it is no picture of these formats, damaged or too large
        """
        from PIL import Image, ImageOps  # by the worker that needs it

        box = (int(self.params["width"] or 0), int(self.params["height"] or 0))
        out = io.BytesIO()
        try:
            with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    raise Image.DecompressionBombError
                kind = picture.format
                picture.thumbnail(box)  # JPEG is decoded at a smaller scale
                small = ImageOps.exif_transpose(picture)
                small.thumbnail(box)  # turned, its sides have changed places
                for name in [name for name in small.info if name not in _KEPT]:
                    del small.info[name]
                small.save(out, kind, quality=int(self.params["quality"] or 0))
        except Image.DecompressionBombError as error:
            raise FilterError(f"`thumbnail` takes pictures of at most {MOST_PIXELS} pixels") from error
        except Exception as error:  # Pillow raises all kinds of them for what is damaged
            raise FilterError("`thumbnail`: this is no JPEG, PNG, GIF or WebP picture, or a damaged one") from error
        return out.getvalue()


#: What a picture cannot be shown rightly without: its colour profile, and the colour that counts as transparent.
_KEPT: Final = frozenset({"icc_profile", "transparency", "background"})
