"""Streams through storlets whose agent is an ordinary process, without the container's confinement."""

import gc
import hashlib
import itertools
import os
import resource

import pytest
from tests.support.sandbox.storlets import ACCOUNT, BareTeam, python_storlet, read_through, through

from sluice_filters.api import BadParameter, CorruptData, FilterError, Hint
from sluice_filters.chain import ChainEncoder, chain_decoder, plain_size
from sluice_filters.testing import FilterContract, cut, run
from sluice_sandbox.limits import Limits, Step
from sluice_sandbox.storlets.invocation import invocation_filter
from sluice_sandbox.storlets.team import StorletTeam

COPY = "while data := source.read(65536): target.write(data)"
XOR = """
mask = int(params.get("mask", "1"))
while data := source.read(1000):
    target.write(bytes(byte ^ mask for byte in data))
"""
GROW = """
target.write(b"<")
while data := source.read(10):
    target.write(data)
    target.write(b"." * int(params.get("dots", "1")))
target.write(b">")
"""
MASK = {"parameters": [{"name": "mask", "type": "int", "default": 1, "minimum": 0, "maximum": 255}]}
READS = {"on_put": True, "on_get": True}
DATA = bytes(range(256)) * 2048


@pytest.fixture(scope="module")
def team():
    with BareTeam.open(Limits(patience=3.0)) as opened:
        yield opened


@pytest.fixture(scope="module")
def xor(team):
    return team.add("xor", python_storlet(XOR), reverse=True, info=MASK)


@pytest.fixture(scope="class")
def contract_filter(request, xor):
    request.cls.filter = xor


@pytest.mark.usefixtures("contract_filter")
class TestStorletXor(FilterContract):
    checked = False
    samples = (b"", b"x", b"the quick brown fox", bytes(range(30)))
    test_every_damaged_byte_is_noticed_or_harmless = None  # needs a stream for each damage


@pytest.mark.parametrize("size", [0, 1, 65536, 300_000, 5_000_000])
def test_any_size_comes_through(team, size):
    copy = team.add("copy", python_storlet(COPY), reverse=True)
    data = os.urandom(size)
    assert through(copy(), data) == data


def test_neighbours_enter_the_container_once(team, xor):
    copy = team.add("copy", python_storlet(COPY), reverse=True)
    chain = ChainEncoder([xor({"mask": 3}), copy(), xor({"mask": 5})], Hint(size=len(DATA), account=ACCOUNT))
    stored = run(chain, cut(DATA, 50_000))
    assert stored == bytes(byte ^ 6 for byte in DATA)
    records = chain.records()
    assert [one["f"] for one in records] == ["xor", "copy", "xor"]
    assert plain_size(records) == len(DATA)
    known = {"xor": xor, "copy": copy}
    assert run(chain_decoder(records, known, Hint(account=ACCOUNT)), cut(stored, 50_000)) == DATA


def test_undoing_takes_the_parameters_of_then_not_of_now(team, xor):
    chain = ChainEncoder([xor({"mask": 77})], Hint(size=3, account=ACCOUNT))
    stored = run(chain, [b"abc"])
    assert run(chain_decoder(chain.records(), {"xor": xor}, Hint(account=ACCOUNT)), [stored]) == b"abc"


def test_damage_on_disk_is_told_from_a_fault_of_the_code(team, xor):
    chain = ChainEncoder([xor()], Hint(size=len(DATA), account=ACCOUNT))
    stored = bytearray(run(chain, [DATA]))
    stored[1000] ^= 1
    with pytest.raises(CorruptData, match="`xor` are damaged"):
        run(chain_decoder(chain.records(), {"xor": xor}, Hint(account=ACCOUNT)), [bytes(stored)])


def test_a_filter_that_gives_much_while_it_takes_is_waited_for(team):
    grow = team.add("grow", python_storlet(GROW), info={**READS, "parameters": [{"name": "dots", "type": "int"}]})
    out = through(grow({"dots": 100}), DATA)
    assert len(out) == 2 + len(DATA) + 100 * -(-len(DATA) // 10)


def test_readers_run_backwards(team):
    left = team.add("left", python_storlet("target.write(b'L' + source.read())"), info=READS)
    right = team.add("right", python_storlet("target.write(b'R' + source.read())"), info=READS)
    stream = team.reader([left(), right()], Hint(account=ACCOUNT))
    assert stream.feed(b"x") + stream.finish() == b"LRx"


def test_a_storlet_that_takes_its_descriptors_is_counted_by_its_neighbours(team, xor):
    raw = team.add(
        "raw",
        python_storlet("while data := os.read(source.fileno(), 999): os.write(target.fileno(), data)"),
        reverse=True,
    )
    for steps in ([raw()], [xor({"mask": 0}), raw()], [raw(), raw(), xor({"mask": 0})]):
        assert through(steps, DATA) == DATA


def test_parameters_arrive_as_text(team):
    info = {**READS, "parameters": [{"name": "a", "type": "bool"}, {"name": "b", "type": "float"}]}
    tell = team.add(
        "tell", python_storlet("source.read(); target.write(repr(sorted(params.items())).encode())"), info=info
    )
    text = through(tell({"a": True, "b": 0.5}), b"x").decode()
    for part in ("('a', 'true')", "('b', '0.5')", "('sluice_direction', 'do')", "storlet_execution_path"):
        assert part in text


def test_what_a_storlet_needs_stands_beside_it(team):
    library = b"WORD = b'from the library'\n"
    sha256 = hashlib.sha256(library).hexdigest()
    team._store.add(library, sha256)
    code = python_storlet("import helper; source.read(); target.write(helper.WORD)")
    one = team.add("helped", code, info=READS, dependencies={"helper.py": sha256})
    assert through(one(), b"x") == b"from the library"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise KeyError('secret')", "filter `bad` failed: it raised KeyError"),
        ("target.write(source.read()); target.flush(); os._exit(0)", "filter `bad` failed: it was killed"),
        ("target.write(source.read(10))", "filter `bad` ended before its input"),
        ("time.sleep(600)", "filter `bad` did nothing for 3 s"),
        ("source.read(); os.write(target.obj_fd, b'x' * 10)", "filter `bad` ended after"),
    ],
)
def test_a_bad_end_is_an_error_that_says_why_and_no_more(team, body, reason):
    bad = team.add("bad", python_storlet(body), reverse=True)
    with pytest.raises(FilterError, match=reason) as caught:
        through(bad(), DATA)
    assert "secret" not in str(caught.value)


def test_a_storlet_cannot_be_without_a_tenant(team, xor):
    step = Step("xor", xor.upload.sha256, xor.upload.main, {})
    with pytest.raises(FilterError, match="`xor` runs in its tenant's container, and no tenant is known"):
        StorletTeam.session(team, [step], Hint())


def test_runs_leave_no_descriptor_and_no_process(team, xor):
    through(xor(), DATA)
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(5):
        through(xor(), DATA)
        team.encoder([xor()], Hint(account=ACCOUNT)).feed(DATA)
    gc.collect()
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_stream_that_fails_at_its_end_was_never_complete(team):
    """Its bytes may all be there before it fails; a client that knows the length must not have received them all."""
    body = "target.write(source.read(10)); target.flush(); source.read(); raise ValueError"
    bad = team.add("bad", python_storlet(body), reverse=True)
    stream = team.encoder([bad()], Hint(account=ACCOUNT))
    got = stream.feed(b"x" * 10)
    while not stream._through.given.size:
        got += stream.feed(b"x")
    with pytest.raises(FilterError):
        stream.finish()
    assert len(got) < stream._through.given.size == 10


def test_many_at_once_wait_for_their_daemon(team, xor):
    streams = [team.encoder([xor()], Hint(account=ACCOUNT)) for _ in range(team.place.runs + 14)]
    begun = [one.feed(DATA[:10]) for one in streams]
    for one, first in zip(streams, begun, strict=True):
        assert len(first + one.finish()) == 10


def test_without_descriptors_it_is_an_error_like_any_other(team, xor):
    through(xor(), DATA)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    stream = team.encoder([xor()], Hint(account=ACCOUNT))
    used = {int(one) for one in os.listdir("/proc/self/fd")}
    # the limit applies to descriptor numbers, some of which may be free below the used ones: two stay free
    limit = next(itertools.islice((number for number in itertools.count() if number not in used), 2, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        with pytest.raises(FilterError, match="`xor` cannot run now: too many open files"):
            stream.feed(DATA)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert through(xor({"mask": 0}), DATA) == DATA


def test_when_the_factory_was_killed_the_next_request_starts_it_again(team, xor):
    through(xor(), DATA)
    container = team.container(ACCOUNT)
    starts = container.starts
    container.end()
    assert through(xor({"mask": 0}), DATA) == DATA
    assert container.starts == starts + 1


class TestOptional:
    info = {"parameters": [{"name": "optional", "type": "bool", "default": True}]}

    @pytest.mark.parametrize(
        "body",
        ["raise ValueError", "source.read(); raise ValueError", "time.sleep(600)", "os._exit(1)", "source.read(3)"],
    )
    def test_an_optional_filter_that_fails_before_its_first_byte_is_left_out(self, team, body):
        one = team.add("maybe", python_storlet(body), info=self.info)
        assert read_through(one(), b"untouched") == b"untouched"

    def test_an_optional_filter_that_works_is_applied(self, team):
        one = team.add("maybe", python_storlet("target.write(source.read().upper())"), info=self.info)
        assert read_through(one(), b"shout") == b"SHOUT"

    def test_an_optional_filter_that_fails_later_is_an_error(self, team):
        body = "while data := source.read(100_000): target.write(data)\nraise ValueError"
        one = team.add("maybe", python_storlet(body), info=self.info)
        stream = one().reader(Hint(account=ACCOUNT))
        got = b""
        while not got:
            got = stream.feed(bytes(100_000))
        with pytest.raises(FilterError):
            stream.finish()

    def test_a_policy_may_make_an_optional_filter_mandatory(self, team):
        one = team.add("maybe", python_storlet("raise ValueError"), info=self.info)
        with pytest.raises(FilterError):
            read_through(one({"optional": False}), b"x")


@pytest.fixture(scope="module")
def explicit(team):
    info = {**READS, "parameters": [{"name": "n", "type": "int", "default": 1}, {"name": "up", "type": "bool"}]}
    body = """
        data = source.read() * int(params["n"])
        target.write(data.upper() if params.get("up") == "true" else data)
    """
    known = {
        "times": team.add("times", python_storlet(body), info=info),
        "tail": team.add("tail", python_storlet("target.write(source.read() + b'!')"), info=READS),
    }
    return invocation_filter(known)({"allow": "times, tail, absent"})


class TestStorletInvocation:
    @pytest.mark.parametrize(
        ("asked", "answer"),
        [
            ({}, b"ab"),
            ({"X-Run-Storlet": "tail"}, b"ab!"),
            ({"X-Run-Storlet": "times", "X-Storlet-Parameter-1": "n:2"}, b"abab"),
            ({"X-Run-Storlet": "times", "X-Storlet-Parameter-1": "n: 2", "X-Storlet-Parameter-2": "Up:yes"}, b"ABAB"),
            ({"X-Run-Storlet": "times, tail", "X-Storlet-Parameter-3": "n:2"}, b"abab!"),
            ({"X-Run-Storlet": "tail,times", "X-Storlet-Parameter-3": "n:2"}, b"ab!ab!"),
        ],
    )
    def test_the_client_chooses(self, explicit, asked, answer):
        assert explicit.reads(Hint(asked=asked)) == explicit.applies(Hint(asked=asked)) == bool(asked)
        assert read_through(explicit, b"ab", asked) == answer
        assert run(explicit.encoder(Hint(account=ACCOUNT, asked=asked)), [b"ab"]) == answer

    @pytest.mark.parametrize(
        ("asked", "reason"),
        [
            ({"X-Run-Storlet": "tial"}, "storlet `tial` may not be run here, did you mean `tail`"),
            ({"X-Run-Storlet": "absent"}, "storlet `absent` may not be run here"),
            ({"X-Run-Storlet": "tail", "X-Storlet-Parameter-1": "n"}, "expected `name:value`"),
            ({"X-Run-Storlet": "tail", "X-Storlet-Parameter-1": "n:1"}, "`tail` has no parameter `n`"),
            ({"X-Run-Storlet": "times", "X-Storlet-Parameter-1": "n:many"}, "expected a number"),
            ({"X-Run-Storlet": "times", "X-Storlet-Parameter-1": "up:perhaps"}, "expected true or false"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, explicit, asked, reason):
        with pytest.raises(BadParameter, match=reason):
            explicit.reader(Hint(account=ACCOUNT, asked=asked))

    def test_a_policy_must_name_what_it_allows(self):
        with pytest.raises(BadParameter, match="needs parameter `allow`"):
            invocation_filter({})({})
