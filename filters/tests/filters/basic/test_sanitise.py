"""Pictures and documents without their metadata."""

import io
import zlib

import exiv2
import pikepdf
import pytest
from PIL import Image

from sluice_filters.api import FilterError, Hint
from sluice_filters.basic.sanitise import Sanitise
from sluice_filters.pipe import cut, run

SECRET = b"secret place"
_MAKER, _ORIENTATION, _TURNED = 0x010F, 0x0112, 6


def picture(kind="JPEG"):
    """A picture with its location, in every form that a JPEG supports."""
    made = Image.effect_noise((64, 48), 90).convert("RGB")
    tags = Image.Exif()
    tags[_MAKER], tags[_ORIENTATION] = SECRET.decode(), _TURNED
    out = io.BytesIO()
    made.save(out, kind, **({"exif": tags, "comment": SECRET} if kind == "JPEG" else {}))
    if kind != "JPEG":
        return out.getvalue()
    image = exiv2.ImageFactory.open(out.getvalue())
    image.readMetadata()
    image.xmpData()["Xmp.dc.title"] = SECRET.decode()
    image.iptcData()["Iptc.Application2.City"] = SECRET.decode()
    image.writeMetadata()
    source = image.io()
    source.open()
    return bytes(source.mmap())


def document(**options):
    """A PDF with its author, in every place that a PDF supports."""
    made = pikepdf.new()
    made.add_blank_page()
    made.docinfo["/Author"] = SECRET.decode()
    with made.open_metadata() as metadata:
        metadata["dc:creator"] = [SECRET.decode()]
    page = made.pages[0].obj
    page["/PieceInfo"] = pikepdf.Dictionary(A=pikepdf.String(SECRET.decode()))
    packet = pikepdf.Stream(made, SECRET)
    parts = pikepdf.Array([pikepdf.Dictionary(Metadata=packet)])
    page["/Resources"] = pikepdf.Dictionary(Properties=pikepdf.Dictionary(MC0=pikepdf.Dictionary(Parts=parts)))
    out = io.BytesIO()
    made.save(out, **options)
    return out.getvalue()


def read(data, name="a.jpg", content_type=None, step=1000, **params):
    hint = Hint(len(data), content_type, name)
    made = Sanitise(params)
    return run(made.reader(hint), cut(data, step)) if made.reads(hint) else data


def test_a_picture_keeps_its_pixels_and_orientation_and_nothing_else():
    dirty = picture()
    assert dirty.count(SECRET) >= 4
    clean = read(dirty)
    assert SECRET not in clean
    shown = Image.open(io.BytesIO(clean))
    assert shown.tobytes() == Image.open(io.BytesIO(dirty)).tobytes()
    assert dict(shown.getexif()) == {_ORIENTATION: _TURNED}
    assert read(clean) == clean
    assert read(dirty, step=7) == clean


@pytest.mark.parametrize("options", [{}, {"object_stream_mode": pikepdf.ObjectStreamMode.generate}])
def test_a_document_keeps_its_pages_and_loses_what_it_says_of_itself(options):
    dirty = document(**options)
    clean = read(dirty, "a.PDF")
    assert SECRET not in clean
    with pikepdf.open(io.BytesIO(clean)) as shown:
        assert len(shown.pages) == 1
        assert "/Info" not in shown.trailer
        assert "/Metadata" not in shown.Root
        assert "/PieceInfo" not in shown.pages[0].obj
        streams = [one.read_bytes() for one in shown.objects if isinstance(one, pikepdf.Stream)]
        assert not any(SECRET in one for one in streams)
    assert read(dirty, "b", "application/pdf; v=1", step=7) == clean


@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "in another filter"])
def test_pictures_in_a_document_are_cleaned_and_keep_their_pixels(wrapped):
    dirty = picture()
    made = pikepdf.new()
    made.add_blank_page()
    shape = {"Width": 64, "Height": 48, "ColorSpace": pikepdf.Name.DeviceRGB, "BitsPerComponent": 8}
    image = pikepdf.Stream(made, b"", Type=pikepdf.Name.XObject, Subtype=pikepdf.Name.Image, **shape)
    filters = [pikepdf.Name.FlateDecode, pikepdf.Name.DCTDecode] if wrapped else [pikepdf.Name.DCTDecode]
    params = [None, pikepdf.Dictionary(ColorTransform=1)] if wrapped else [None]
    image.write(zlib.compress(dirty) if wrapped else dirty, filter=filters, decode_parms=params)
    made.pages[0].obj["/Resources"] = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=image))
    out = io.BytesIO()
    made.save(out)
    clean = read(out.getvalue(), "a.pdf")
    assert SECRET not in clean
    with pikepdf.open(io.BytesIO(clean)) as shown:
        found = shown.pages[0].obj["/Resources"]["/XObject"]["/Im0"]
        assert found["/Filter"] == pikepdf.Name.DCTDecode
        shown_picture = Image.open(io.BytesIO(found.read_raw_bytes()))
        assert shown_picture.tobytes() == Image.open(io.BytesIO(dirty)).tobytes()


@pytest.mark.parametrize(("name", "content_type"), [("a.png", None), ("a", "image/png"), ("a.txt", "text/plain")])
def test_other_types_are_left_alone(name, content_type):
    dirty = picture("PNG")
    assert read(dirty, name, content_type) is dirty


BAD = [
    (b"no picture", "a.jpg", "neither JPEG nor PDF"),
    (picture()[:60], "a.jpg", "damaged"),
    (b"%PDF-1.7 nothing", "a.pdf", "damaged"),
    (document(encryption=pikepdf.Encryption(owner="o", user="u")), "a.pdf", "encrypted"),
]


@pytest.mark.parametrize(("data", "name", "reason"), BAD, ids=[reason for _, _, reason in BAD])
def test_what_cannot_be_read_is_refused_unless_it_may_pass(data, name, reason):
    with pytest.raises(FilterError, match=reason):
        read(data, name)
    assert read(data, name, otherwise="pass") == data


@pytest.mark.parametrize("known", [True, False])
def test_what_is_too_large_is_refused_unless_it_may_pass(known):
    data = picture()
    limit = len(data) - 1
    hint = Hint(len(data) if known else None, None, "a.jpg")
    with pytest.raises(FilterError, match=f"at most {limit} bytes"):
        run(Sanitise({"max_size": limit}).reader(hint), cut(data, 100))
    assert run(Sanitise({"max_size": limit, "otherwise": "pass"}).reader(hint), cut(data, 100)) == data
    assert SECRET not in run(Sanitise({"max_size": len(data)}).reader(hint), cut(data, 100))


def test_a_document_called_a_picture_is_cleaned_as_what_it_is():
    assert SECRET not in read(document(), "a.jpg")


def test_an_empty_object_stays_one():
    assert read(b"") == b""
