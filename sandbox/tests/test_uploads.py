"""The description of an upload, and the folder of verified code."""

from __future__ import annotations

import hashlib

import pytest

from sluice_code.code_store import BadUpload, CodeStore, WrongDigest
from sluice_core.describe import PLACES, PROXY, STORAGE_NODE
from sluice_core.errors import NotFound, SluiceError
from sluice_core.messages.uploads import Upload
from sluice_filters.api import BadParameter
from sluice_filters.basic.noop import Noop
from sluice_sandbox.api import SandboxTeam, filter_class, load_filter
from sluice_sandbox.descriptions import describe_upload
from sluice_sandbox.guard import GuardedEncoder
from sluice_sandbox.limits import Limits

CODE = b"class Main: pass\n"
DIGEST = hashlib.sha256(CODE).hexdigest()

MODE = {"name": "mode", "type": "str"}
RANGED = {"name": "size", "type": "int", "range_by": "mode", "ranges": [{"value": "a", "minimum": 1, "maximum": 2}]}


class Echo:
    """A session that returns its input."""

    def __init__(self, steps):
        self.steps, self.size = steps, 0

    def feed(self, data):
        self.size += len(data)
        return data

    def finish(self):
        return b""

    def counts(self):
        return [(self.size, self.size)] * len(self.steps)


class EchoTeam(SandboxTeam):
    environment = "process"

    def session(self, steps, hint):
        self.last = steps
        return Echo(steps)


def made(**values):
    return Upload(**{"keyword": "tidy", "environment": "process", "language": "python", "main": "Main"} | values)


def one(**values):
    return made(sha256=DIGEST, size=len(CODE), **values)


def test_a_description_defaults_to_the_most_restrictive_values():
    info = describe_upload(one(revision=3))
    assert (info.changes_content, info.changes_length, info.random_access) == (True, True, False)
    assert (info.on_put, info.on_get, info.reversible, info.version) == (False, True, False, 3)
    assert (info.places, info.default_place, info.environment) == (PLACES, PROXY, "process")


@pytest.mark.parametrize(("environment", "places"), [("storlet", (PROXY,)), ("process", PLACES), ("wasm", PLACES)])
def test_only_fast_environments_undo_on_storage_nodes(environment, places):
    assert describe_upload(one(environment=environment, reverse=True)).places == places
    assert describe_upload(one(environment=environment)).places == PLACES


def test_parameters_are_declared_as_dictionaries_and_checked():
    size = {"name": "size", "type": "int", "help": "how much", "minimum": 1, "maximum": 9, "default": 3}
    found = filter_class(one(info={"parameters": [size]}), EchoTeam())
    assert found({"size": 5}).given_parameters() == {"size": 5}
    with pytest.raises(BadParameter, match="`size` is `10`, expected 1 to 9"):
        found({"size": 10})


def test_a_range_may_depend_on_another_parameter():
    ranges = [{"value": "low", "minimum": 1, "maximum": 3}, {"value": "high", "minimum": -5, "maximum": 9}]
    size = {"name": "size", "type": "int", "range_by": "mode", "ranges": ranges}
    mode = {"name": "mode", "type": "str", "choices": ["low", "high"], "default": "low"}
    found = filter_class(one(info={"parameters": [size, mode]}), EchoTeam())
    assert found({"size": -5, "mode": "high"}).params["size"] == -5
    for params, words in (
        ({"size": 4}, "`4`, expected 1 to 3"),
        ({"size": 10, "mode": "high"}, "`10`, expected -5 to 9"),
    ):
        with pytest.raises(BadParameter, match=f"`size` is {words}"):
            found(params)


def test_long_parameters_are_refused():
    found = filter_class(one(info={"parameters": [{"name": "word", "type": "str"}]}), EchoTeam())
    with pytest.raises(BadParameter, match="parameters of filter `tidy` take 1112 bytes, expected at most 1024"):
        found({"word": "x" * 1100})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"environment": "native"}, "environment `native`, expected one of storlet, process, wasm"),
        ({"keyword": "Tidy"}, "keyword `Tidy`, expected lower case"),
        ({"info": {"reversible": True, "version": 2}}, "`reversible` is nothing an upload can declare; `version` is"),
        ({"info": {"parameters": [{"nam": "x"}]}}, "description of filter `tidy`"),
        ({"info": {"parameters": [RANGED]}}, "parameter `size` has ranges by `mode`, expected another parameter"),
        ({"info": {"parameters": [{**RANGED, "range_by": "size"}]}}, "has ranges by `size`, expected another"),
        ({"info": {"parameters": [{**RANGED, "range_by": 5, "ranges": []}]}}, "has ranges by `5`, expected another"),
        (
            {"info": {"parameters": [{**RANGED, "ranges": [{"value": 1, "minimum": "a", "maximum": 2}]}, MODE]}},
            "parameter `size` has a range of `a` to `2`, expected numbers",
        ),
        ({"info": {"parameters": [{**RANGED, "ranges": [7]}]}}, "description of filter `tidy`"),
        ({"info": {"places": []}}, "description of filter `tidy`"),
        ({"info": {"on_get": False}}, "it runs neither on PUT nor on GET"),
        ({"reverse": True, "info": {"on_put": False, "on_get": True}}, "it can be undone, but does not run on PUT"),
        ({"reverse": True, "info": {"changes_content": False}}, "it can be undone, but changes nothing"),
        ({"reverse": True, "info": {"on_get": True}}, "it is both undone on GET and run on GET"),
        ({"info": {"changes_content": False}}, "it changes the length, but not the content"),
        ({"info": {"random_access": True}}, "environment `process` has no random access"),
        ({"info": {"places": ["moon"]}}, "places moon, expected some of proxy, storage_node"),
        (
            {"environment": "storlet", "reverse": True, "info": {"places": [STORAGE_NODE]}},
            "places storage_node, expected some of proxy",
        ),
        ({"info": {"default_place": "moon"}}, "default place `moon` is none of its places"),
        (
            {"reverse": True, "info": {"parameters": [{"name": "key", "type": "str", "required": True}]}},
            "it can be undone, but needs a parameter",
        ),
    ],
)
def test_an_upload_that_contradicts_itself_is_refused(values, reason):
    with pytest.raises(BadUpload, match=reason):
        describe_upload(one(**values))


def test_a_filter_belongs_to_its_environment():
    with pytest.raises(BadUpload, match="filter `tidy` is for `wasm`, expected `process`"):
        filter_class(one(environment="wasm"), EchoTeam())


def test_a_reader_runs_neighbours_backwards_and_a_native_filter_is_none():
    team = EchoTeam()
    first, second = (filter_class(one(keyword=name), team)() for name in ("first", "second"))
    assert isinstance(team.reader([first, second], None), GuardedEncoder)
    assert [step.keyword for step in team.last] == ["second", "first"]
    with pytest.raises(Exception, match="filter `noop` is not an uploaded one"):
        team.encoder([Noop()], None)


def test_code_comes_back_as_it_was_added_in_pieces(tmp_path):
    store = CodeStore(tmp_path / "code")
    path = store.add(iter([CODE[:5], CODE[5:]]), DIGEST)
    assert store.read(DIGEST) == CODE
    assert (path.stat().st_mode & 0o777, [entry.name for entry in path.parent.iterdir()]) == (0o444, [DIGEST])
    assert store.add(CODE, DIGEST) == path


def test_code_of_a_wrong_digest_is_refused_and_nothing_is_kept(tmp_path):
    store = CodeStore(tmp_path)
    with pytest.raises(WrongDigest, match=f"code has SHA-256 `{DIGEST}`, expected `{'0' * 64}`"):
        store.add(CODE, "0" * 64)
    assert list(tmp_path.iterdir()) == []
    assert not store.has("0" * 64)


def test_a_source_that_breaks_off_leaves_nothing(tmp_path):
    def broken():
        yield CODE
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        CodeStore(tmp_path).add(broken(), DIGEST)
    assert list(tmp_path.iterdir()) == []


def test_code_that_was_changed_on_the_node_is_never_run_and_is_removed(tmp_path):
    store = CodeStore(tmp_path)
    path = store.add(CODE, DIGEST)
    path.chmod(0o644)
    path.write_bytes(CODE + b"import evil\n")
    with pytest.raises(WrongDigest, match="on this node, and was removed"):
        load_filter(one(), store, EchoTeam())
    assert not path.exists()
    with pytest.raises(NotFound, match="is not on this node"):
        store.read(DIGEST)


@pytest.mark.parametrize("name", ["../etc/passwd", "", "A" * 64, "0" * 63])
def test_code_names_must_be_digests(tmp_path, name):
    with pytest.raises(BadUpload, match="is no SHA-256"):
        CodeStore(tmp_path).path(name)


@pytest.mark.parametrize(
    ("upload", "reason"),
    [
        (one(keyword="elsewhere", environment="wasm"), "filter `elsewhere` is for `wasm`, expected `process`"),
        (made(keyword="short", sha256=DIGEST, size=1), "code of filter `short` has 17 bytes, expected 1"),
        (made(keyword="absent", sha256="0" * 64, size=1), f"code `{'0' * 64}` is not on this node"),
    ],
)
def test_an_upload_that_is_not_what_was_registered_is_refused(tmp_path, upload, reason):
    store = CodeStore(tmp_path)
    store.add(CODE, DIGEST)
    assert load_filter(one(), store, EchoTeam()).info.keyword == "tidy"
    with pytest.raises(SluiceError, match=reason):
        load_filter(upload, store, EchoTeam())


def test_limits_grow_with_what_was_taken():
    limits = Limits(slack=10, growth=2.0, cpu=1.0, cpu_per_mb=0.5)
    assert (limits.output(100), limits.seconds(2_000_000)) == (210, 2.0)
