import pytest

from sluice_objects.api import LARGEST_ANSWER, LARGEST_STATE
from sluice_objects.classes.register import Register
from sluice_objects.testing import LocalHome
from sluice_objects.writes import etag_of


@pytest.fixture
def home():
    home = LocalHome(Register())
    home.call("write", data="hello")
    return home


def stream(home):
    return home.state.content.stream


def test_a_range_is_read_with_size_and_version(home):
    assert home.call("read", offset=1, size=3) == {"data": b"ell", "size": 5, "version": 2}
    assert home.call("read", offset=9) == {"data": b"", "size": 5, "version": 2}


def test_a_write_under_a_version_succeeds_once(home):
    assert home.call("write", data="first", version=2) == {"size": 5}
    assert home.refusal("write", data="second", version=2).status == 412
    assert stream(home) == b"first"


def test_a_write_under_an_etag_succeeds_once(home):
    etag = etag_of(b"hello")
    assert home.call("write", data=b"", etag=f'"{etag}"') == {"size": 0}
    assert home.refusal("write", data="second", etag=etag).status == 412
    assert stream(home) == b""


def test_an_append_under_a_size_succeeds_once(home):
    assert home.call("append", data=" world", size=5) == {"offset": 5, "size": 11}
    assert home.refusal("append", data="!", size=5).status == 412
    assert home.call("append", data="!") == {"offset": 11, "size": 12}
    assert stream(home) == b"hello world!"


def test_ranges_are_swapped_together_or_not_at_all(home):
    swap = [{"offset": 0, "expected": "h", "data": "J"}, {"offset": 4, "expected": "o", "data": "o!"}]
    assert home.call("swap", ranges=swap) == {"size": 6}
    assert stream(home) == b"Jello!"
    half = [{"offset": 1, "expected": "e", "data": "E"}, {"offset": 4, "expected": "o!!", "data": "x"}]
    assert home.refusal("swap", ranges=half).status == 412
    assert stream(home) == b"Jello!"


def test_ranges_are_compared_before_one_changes(home):
    overlapping = [{"offset": 0, "expected": "he", "data": "xx"}, {"offset": 1, "expected": "el", "data": "yy"}]
    home.call("swap", ranges=overlapping)
    assert stream(home) == b"xyylo"


def test_more_than_an_answer_is_read_in_parts(home):
    home.call("write", data=bytes(LARGEST_ANSWER + 1))
    outcome = home.refusal("read")
    assert (outcome.status, outcome.error) == (413, "AnswerTooLarge")
    assert len(home.call("read", offset=LARGEST_ANSWER - 9)["data"]) == 10


def test_a_stream_that_would_be_too_large_is_refused(home):
    assert home.refusal("append", data=bytes(LARGEST_STATE - 4)).status == 413
    far = [{"offset": 1 << 40, "expected": "", "data": "x"}]
    assert home.refusal("swap", ranges=far).status == 413
    assert stream(home) == b"hello"
