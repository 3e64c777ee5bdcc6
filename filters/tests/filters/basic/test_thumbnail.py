"""thumbnail: pictures that fit, in their own format, without metadata."""

import io
import struct
import zlib

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from sluice_filters.api import FilterError, Hint
from sluice_filters.basic import thumbnail
from sluice_filters.basic.thumbnail import Thumbnail
from sluice_filters.testing import cut, run


def picture(kind="JPEG", size=(80, 60), **options):
    out = io.BytesIO()
    image = Image.linear_gradient("L").resize(size)
    image.convert("P" if kind == "GIF" else "RGB").save(out, kind, **options)
    return out.getvalue()


def convert(data, **params):
    return run(Thumbnail(params).reader(Hint()), cut(data, 1000))


def opened(data):
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize("kind", thumbnail.FORMATS)
def test_a_picture_fits_and_keeps_its_format_and_its_sides(kind):
    made = opened(convert(picture(kind), width=40, height=40))
    assert (made.format, made.size) == (kind, (40, 30))


def test_a_small_picture_keeps_its_size():
    assert opened(convert(picture(size=(8, 6)))).size == (8, 6)


def test_a_turned_picture_is_turned_back_and_says_nothing_of_its_maker():
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Leica"  # orientation, make
    made = convert(picture(exif=exif), width=40, height=20)
    assert opened(made).size == (15, 20)
    assert not opened(made).getexif()
    assert b"Leica" in picture(exif=exif)
    assert b"Leica" not in made


def said_of_the_maker():
    text = PngInfo()
    text.add_itxt("XML:com.adobe.xmp", "<x:xmpmeta>Leica</x:xmpmeta>")
    text.add_text("Author", "Leica")
    return {
        "JPEG": {"comment": b"Leica", "xmp": b"<x:xmpmeta>Leica</x:xmpmeta>"},
        "PNG": {"pnginfo": text},
        "GIF": {"comment": b"Leica"},
        "WEBP": {"xmp": b"<x:xmpmeta>Leica</x:xmpmeta>"},
    }


@pytest.mark.parametrize("kind", thumbnail.FORMATS)
def test_comments_are_left_out(kind):
    given = picture(kind, **said_of_the_maker()[kind])
    assert b"Leica" in given
    assert b"Leica" not in convert(given)


def test_colours_are_what_they_were():
    out = io.BytesIO()
    Image.new("RGBA", (9, 9), (0, 0, 0, 0)).save(out, "PNG", icc_profile=b"profile")
    made = opened(convert(out.getvalue(), width=3))
    assert (made.mode, made.getpixel((1, 1))[3], made.info["icc_profile"]) == ("RGBA", 0, b"profile")


def bomb(width, height):
    """A PNG that declares this size, and has one byte of pixels."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"no picture", "this is no JPEG"),
        (picture()[:400], "or a damaged one"),
        (picture("BMP"), "this is no JPEG"),
        (bomb(8_000, 8_000), "at most 50000000 pixels"),
        (bomb(60_000, 60_000), "at most 50000000 pixels"),
    ],
)
def test_what_cannot_be_made_smaller_is_refused(data, fault):
    with pytest.raises(FilterError, match=fault):
        convert(data)


def test_pictures_are_chosen_by_their_type():
    chosen = [name for name in ("a.JPG", "b.webp", "c.txt", "d") if Thumbnail().reads(Hint(name=name))]
    assert chosen == ["a.JPG", "b.webp"]
    assert Thumbnail().reads(Hint(content_type="image/png"))
