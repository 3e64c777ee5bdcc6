"""Uploaded native filters: the verdicts of a trial, and the class for hosts."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from sluice_code.code_store import BadUpload, CodeStore
from sluice_code.native_trial import Trial, try_code
from sluice_core.messages.uploads import Revision, Upload
from sluice_filters.api import FilterError, Hint, HostServices
from sluice_filters.chain import ChainEncoder, chain_decoder
from sluice_filters.registry import BUILT_IN
from sluice_filters.testing import run
from sluice_filters.trial.native import native_filter, native_info
from sluice_filters.trial.trial import try_filter

HEAD = """\
from sluice_core.describe import FILTER, ActionInfo, Parameter
from sluice_filters.api import CorruptData, Filter, Stream
from sluice_filters.basic.bytemap import ByteMap
from sluice_filters.visits import Visit
"""
#: A filter that replaces bytes, by a table; ``{}`` is the offset of its table.
TURN = (
    HEAD
    + """
class Turn(ByteMap):
    info = ActionInfo("turn", FILTER, "turn bytes around", changes_content=True, reversible=True, random_access=True)

    def table(self):
        return bytes(({} - one) % 256 for one in range(256))

    def said(self):
        return {{"by": {}}}

    def table_of(self, record):
        by = record.get("by")
        if by not in (255, 254, 253):
            raise CorruptData(f"by `{{by}}`")
        return bytes((by - one) % 256 for one in range(256))
"""
)
#: A filter that decodes only its own output.
NARROW = TURN.replace("(255, 254, 253)", "({},)")


def turn(by=255):
    return TURN.format(by, by).encode()


def narrow(by):
    return NARROW.format(by, by, by).encode()


def with_info(words, body="    pass", base="Filter"):
    return f"{HEAD}\nclass Mine({base}):\n    info = ActionInfo('mine', FILTER, 'help', {words})\n{body}\n".encode()


def digest(code):
    return hashlib.sha256(code).hexdigest()


@pytest.fixture
def store(tmp_path):
    return CodeStore(tmp_path / "code")


@pytest.fixture
def verdict(store):
    """The verdict of a trial of ``code``, in this process."""

    def ask(code, keyword="", main="", earlier=()):
        revisions = []
        for number, one in enumerate(earlier, 1):
            store.add(one, digest(one))
            revisions.append(Revision(number, digest(one), len(one)))
        return try_filter(Trial("filter", str(store.folder), digest(code), keyword, main, tuple(revisions)), code)

    return ask


@pytest.mark.parametrize("one", BUILT_IN, ids=lambda one: one.info.keyword)
def test_every_filter_of_ours_would_pass_as_an_upload(verdict, one):
    code = f"from dataclasses import replace\nfrom {one.__module__} import {one.__name__} as Base\n"
    code += "class Mine(Base):\n    info = replace(Base.info, keyword='mine')\n"
    found = verdict(code.encode(), "mine")
    assert (found.reason, found.main) == ("", "Mine")
    upload = Upload("mine", "native", "python", "Mine", digest(code.encode()), 1, info=found.info, revision=4)
    assert native_info(upload) == replace(one.info, keyword="mine", version=4)


STREAMS = """
    def encoder(self, hint):
        return Do()
    def decoder(self, record, window=None):
        return Undo()

class Do(Stream):
    size = 0
    def feed(self, data):
        self.size += len(data)
        return data[::1].swapcase()
    def record(self):
        return {record}

class Undo(Stream):
    size = 0
    def feed(self, data):
        self.size += len(data)
        return data.swapcase()
    def finish(self):
        {finish}
        return b""
"""
#: Pads the short sample.
PADDED = "return b'?' * (300 - self.size) if 99 < self.size < 300 else b''"
REVERSIBLE = "changes_content=True, reversible=True"


def reversible(record="{'size': self.size}", finish="pass"):
    return with_info(REVERSIBLE, STREAMS.format(record=record, finish=finish))


MISPLACED = b"""
    def locate(self, record, start, stop):
        from sluice_filters.api import Window
        return Window(0, stop - start, 0, stop - start)
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"class", "SyntaxError"),
        (b"import nothing_like_it", "line 1: ModuleNotFoundError: No module named 'nothing_like_it'"),
        (b"x = 1", "the code has no subclass of Filter"),
        (HEAD.encode() + b"class A(Filter): pass", "class `A` has no `info` that is an ActionInfo"),
        (with_info("places=('moon',)"), "places `('moon',)`"),
        (with_info("on_put=False"), "it runs neither on PUT nor on GET"),
        (with_info("reversible=True"), "it can be undone, but changes nothing"),
        (with_info("random_access=True"), "it has random access, but cannot be undone"),
        (with_info("parameters=(Parameter('a', 'colour', 'x'),)"), "parameter `a` is of type `colour`"),
        (with_info("parameters=('a',)"), "parameter `a`, expected a Parameter"),
        (with_info("parameters=3"), "what it says of itself: TypeError"),
        (with_info("parameters=(Parameter('a', 'int', 'x', default='many'),)"), "cannot be made with its defaults"),
        (with_info("", "    def __init__(self, params=None): 1/0"), "cannot be made with its defaults: ZeroDivision"),
        (with_info("", "    def encoder(self, hint): 1/0"), "encoding 0 bytes: ZeroDivisionError"),
        (with_info("on_get=True", "    def reader(self, hint): 1/0"), "reading 0 bytes: ZeroDivisionError"),
        (with_info("on_request=True", "    def visit(self, call): 1/0"), "accompanying a request: ZeroDivisionError"),
        (with_info("on_request=True", "    def visit(self, call): return 7"), "visit() gave `int`"),
        (with_info("", STREAMS.format(record="None", finish="pass")), "does not say so in `changes_content`"),
        (
            with_info("changes_content=True", STREAMS.format(record="{}", finish="pass")),
            "it cannot be undone",
        ),
        (reversible("None"), "but gives no record of that"),
        (reversible("{'size': 3}"), "says that they are 3"),
        (reversible("{'size': self.size, 'x': b'y'}"), "TypeError: Object of type bytes is not JSON"),
        (reversible("{'size': self.size, 'x': 'y' * 5000}"), "expected at most 2048"),
        (reversible(finish="return b'more'"), "are others than it encoded"),
        (reversible(finish=PADDED), "cut off are not noticed by its decoder"),
        (reversible(finish="1/0"), "decoding 0 bytes: ZeroDivisionError"),
        (reversible().replace(b"return data.swapcase()", b"return data"), "are others than it encoded"),
        (turn() + MISPLACED, "are others when read alone"),
    ],
)
def test_what_breaks_the_contract_is_refused_with_the_reason(verdict, code, reason):
    with pytest.raises(BadUpload) as refused:
        verdict(code)
    assert reason in str(refused.value)


def test_a_decoder_may_leave_missing_bytes_to_its_host(verdict):
    assert verdict(reversible()).main == "Mine"


def test_code_with_another_keyword_is_refused(verdict):
    with pytest.raises(BadUpload, match="calls itself `turn`, expected `twist`"):
        verdict(turn(), "twist")


def test_a_reversible_filter_with_all_that_belongs_to_it_passes(verdict):
    found = verdict(turn(), "turn")
    assert (found.main, found.info["reversible"], found.info["random_access"]) == ("Turn", True, True)


def test_a_new_revision_must_give_back_what_earlier_ones_stored(verdict):
    assert verdict(turn(254), "turn", earlier=(turn(255),)).main == "Turn"
    with pytest.raises(BadUpload, match="undoing what revision 1 stored: CorruptData: by `255`"):
        verdict(narrow(254), "turn", earlier=(turn(255),))
    plain = with_info("on_put=True").replace(b"'mine'", b"'turn'")
    with pytest.raises(BadUpload, match="cannot undo what revision 2 stored, since it is not reversible"):
        verdict(plain, "turn", earlier=(plain + b"\n", turn(255)))


def test_an_earlier_revision_that_does_not_work_here_is_passed_over(verdict):
    assert verdict(narrow(254), "turn", earlier=(b"import nothing_like_it", reversible())).main == "Turn"


def test_a_child_process_reaches_the_same_verdict(store):
    store.add(turn(), digest(turn()))
    good = try_code(Trial("filter", str(store.folder), digest(turn()), "turn"))
    assert (good.reason, good.main) == ("", "Turn")
    bad = HEAD.encode() + b"import os\nos._exit(3)"
    store.add(bad, digest(bad))
    assert "with status 3" in try_code(Trial("filter", str(store.folder), digest(bad), "turn")).reason


# -- the class for hosts


def registered(code, info, **more):
    return Upload("turn", "native", "python", "Turn", digest(code), len(code), info=info, **more)


@pytest.fixture
def turned(verdict):
    info = verdict(turn(), "turn").info

    def make(by, revision):
        return native_filter(registered(turn(by), info, revision=revision), turn(by))

    return make


def test_two_revisions_stand_side_by_side_and_the_version_is_the_revision(turned):
    one, two = turned(255, 1), turned(254, 2)
    assert (one.info.version, two.info.version) == (1, 2)
    chain = ChainEncoder([one()], Hint(5))
    stored = run(chain, [b"hello"])
    assert run(chain_decoder(chain.records(), {"turn": two}), [stored]) == b"hello"
    chain = ChainEncoder([two()], Hint(5))
    stored = run(chain, [b"hello"])
    with pytest.raises(FilterError, match="version 2 is needed, installed is 1"):
        chain_decoder(chain.records(), {"turn": one})


def test_an_uploaded_filter_gets_the_surroundings_of_its_process(turned):
    lent = HostServices()
    bound = turned(255, 3).bound(lent)
    assert (bound.surroundings, bound.info.version, bound.upload.revision) == (lent, 3, 3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"keyword": "twist"}, "calls itself `turn`, expected `twist`"),
        ({"main": "Twist"}, "class `Twist` is missing"),
        ({"environment": "wasm"}, "is for `wasm`, expected `native`"),
        ({"info": {"parameters": [{"kind": 1}]}}, "description of filter `turn`"),
    ],
)
def test_code_that_differs_from_its_registration_is_not_loaded(verdict, change, reason):
    upload = replace(registered(turn(), verdict(turn()).info), **change)
    with pytest.raises(BadUpload) as refused:
        native_filter(upload, turn())
    assert reason in str(refused.value)


def test_unknown_fields_of_a_newer_release_are_ignored(verdict):
    info = {**verdict(turn()).info, "colour": "blue"}
    assert native_info(registered(turn(), info)).keyword == "turn"
