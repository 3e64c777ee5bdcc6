"""The answers of a controller, compiled by the language; and the words that uploads add."""

import logging
import re
from dataclasses import replace

import pytest
from tests.support.actors.host import run_scenario

from sluice_actors.controllers.assignment_compiler import AssignmentCompiler, check_rates
from sluice_actors.controllers.controller_process import ControllerError
from sluice_actors.controllers.uploads import UploadIndex, action_of
from sluice_core.control import Assign, Rate
from sluice_core.describe import PLACES
from sluice_core.errors import DecodeError
from sluice_core.messages.policies import Change
from sluice_core.messages.uploads import CONTROLLER_CODE, METRIC_CODE, Upload


def upload(keyword="rot13", **more):
    return Upload(keyword, "process", "python", "", "0" * 64, 5, **more)


def compiled(*assigns, registered=None):
    """Target and keyword → assignment."""
    found = run_scenario(AssignmentCompiler("busy", 7).compile(assigns, (registered or UploadIndex()).catalogue))
    return {(one.path(), one.keyword): one for one in found.values()}


@pytest.mark.parametrize(
    ("target", "level", "select"),
    [
        ("", "cluster", "name"),
        ("AUTH_a", "tenant", "name"),
        ("AUTH_a/c", "container", "name"),
        ("AUTH_a/c/o/p", "object", "name"),
        ('AUTH_a/c"; FOR CLUSTER DO SET noop #', "container", "name"),
        ("ALL", "tenant", "name"),
    ],
)
def test_a_target_is_a_path_and_nothing_else(target, level, select):
    (one,) = compiled(Assign(target, "noop")).values()
    assert (one.target.level, one.target.select, one.target.name) == (level, select, target)


def test_actions_of_one_target_are_one_sentence_in_the_order_of_their_stages():
    found = compiled(
        Assign("AUTH_a", "encryption"), Assign("AUTH_a", "compression", {"level": 3}), Assign("AUTH_b", "noop")
    )
    assert [(name, one.order) for (_, name), one in found.items()] == [
        ("compression", 0),
        ("encryption", 1),
        ("noop", 0),
    ]
    assert found["AUTH_a", "encryption"].protective


def test_floors_and_the_cap_on_replication_are_assignments_too():
    found = compiled(
        Assign("AUTH_a", "bandwidth", {"get_bw": "30MBps"}), Assign("", "replication", {"max_bw": "5MBps"})
    )
    assert {one.kind: dict(one.params) for one in found.values()} == {
        "bandwidth": {"get_bw": 30e6}, "replication": {"max_bw": 5e6},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        (Rate("n1", "AUTH_a", "PUT", 1.0), "a rate for `PUT`, expected `GET`"),
        (Rate("n1", "AUTH_a", "GET", float("nan")), "the rate `nan` of `AUTH_a`, expected bytes per second"),
        (Rate("n1", "AUTH_a", "GET", -1.0), "the rate `-1.0` of `AUTH_a`"),
        (Rate("n1", "AUTH_a", "GET", True), "the rate `True`"),
        (Rate(7, "AUTH_a", "GET", 1.0), "expected texts"),
        (Rate("n1", "AUTH_a", "GET", 1.0, "gold"), "a number of a policy"),
    ],
)
def test_a_rate_that_cannot_be_is_named(rate, reason):
    with pytest.raises(ControllerError, match=re.escape(reason)):
        check_rates((Rate("n1", "AUTH_a", "GET", 1.0), rate), ("GET",))


def test_an_id_depends_on_target_and_keyword_and_not_on_parameters():
    def names(*assigns):
        return list(run_scenario(AssignmentCompiler("busy", 7).compile(assigns, UploadIndex().catalogue)))

    first = names(Assign("AUTH_a", "compression", {"level": 3}))
    assert first == names(Assign("AUTH_a", "compression", {"level": 4}))
    others = names(Assign("AUTH_b", "compression"), Assign("AUTH_a", "noop"))
    assert len({*first, *others}) == 3


@pytest.mark.parametrize(
    ("params", "read"),
    [
        ({"level": 3}, {"level": 3}),
        ({"LEVEL": "3"}, {"level": 3}),
        ({"min_size": "64KiB"}, {"min_size": 65536}),
        ({"min_gain": 0.25}, {"min_gain": 0.25}),
        ({"types": 'pdf, a"b'}, {"types": 'pdf,a"b'}),
    ],
)
def test_parameters_are_read_as_in_a_sentence(params, read):
    (one,) = compiled(Assign("AUTH_a", "compression", params)).values()
    assert one.params == read


@pytest.mark.parametrize(
    ("assigns", "reason"),
    [
        ([Assign("AUTH_a", "compresion")], "unknown action `compresion`, did you mean `compression`"),
        (
            [Assign("AUTH_a", "compression", {"level": 99})],
            "with engine=zstd: expected -7 to 19",
        ),
        ([Assign("AUTH_a", "compression", {"lvl": 1})], "has no parameter `lvl`, did you mean `level`"),
        ([Assign("AUTH_a", "compression", {"level": True})], "expected a whole number"),
        ([Assign("AUTH_a", "compression", {"min_gain": float("nan")})], "got `nan`"),
        ([Assign("AUTH_a", "tagging", {"name": "x"})], "needs parameter `value`"),
        ([Assign("AUTH_a", "caching", place="storage_node")], "does not run ON STORAGE_NODE"),
        ([Assign("AUTH_a", "elasticity", {"target_size": 1})], "`elasticity` is not available on this cluster"),
        ([Assign("AUTH_a", "noop"), Assign("AUTH_a", "noop")], "`noop` stands twice"),
        ([Assign("AUTH_a", "noop", {"a": 1}, verb="delete")], "DELETE takes no parameters"),
        ([Assign("a//b", "noop")], "is not an object's name"),
        ([Assign(7, "noop")], "`7` as a target, expected a text"),
        ([Assign("AUTH_a", None)], "`None` as a keyword"),
        ([Assign("AUTH_a", "noop", ["a"])], "as parameters of `noop`, expected a dictionary"),
        ([Assign("AUTH_a", "noop", {"a": [1]})], "`'a'` = `[1]` for `noop`"),
        ([Assign("AUTH_a", "noop", place="moon")], "the place `moon` for `noop`, expected proxy or storage_node"),
        ([Assign("AUTH_a", "noop", verb="drop")], "the verb `drop` for `noop`, expected `set` or `delete`"),
        ([Assign("AUTH_b", "noop"), Assign("AUTH_a", "no")], "unknown action `no`"),
    ],
)
def test_an_invalid_answer_is_refused_as_a_whole_with_a_reason(assigns, reason):
    with pytest.raises(ControllerError) as raised:
        compiled(*assigns)
    assert reason in str(raised.value)


def test_a_sentence_is_checked_once_until_the_vocabulary_changes():
    registered = UploadIndex()
    answers = AssignmentCompiler("busy", 7)
    wanted = [Assign(f"AUTH_{number}", "compression", {"level": 1}) for number in range(50)]
    first = run_scenario(answers.compile(wanted, registered.catalogue))
    again = run_scenario(answers.compile(wanted, registered.catalogue))
    assert all(again[name] is one for name, one in first.items())
    as_float = [replace(wanted[0], params={"level": 1.5})]
    with pytest.raises(ControllerError, match="not whole"):
        run_scenario(answers.compile(as_float, registered.catalogue))
    registered.replace([upload()])
    other = run_scenario(answers.compile(wanted, registered.catalogue))
    assert other == first
    assert not any(other[name] is one for name, one in first.items())


def test_uploaded_filters_are_in_the_vocabulary_until_they_are_dropped():
    registered = UploadIndex()
    registered.replace([upload(info={"stage": 250})])
    assert compiled(Assign("AUTH_a", "rot13"), registered=registered)["AUTH_a", "rot13"].stage == 250
    registered.apply(Change(2, "h", 0.0, uploads=(upload("rot26"),), upload_drops=("rot13",)))
    assert compiled(Assign("AUTH_a", "rot26"), registered=registered)
    with pytest.raises(ControllerError, match="unknown action `rot13`"):
        compiled(Assign("AUTH_a", "rot13"), registered=registered)


@pytest.mark.parametrize(
    "odd", [{"sha256": ""}, {"kind": METRIC_CODE}, {"kind": CONTROLLER_CODE}, {"info": {"parameters": [{"wrong": 1}]}}]
)
def test_uploads_without_code_or_of_other_kinds_are_not_in_the_vocabulary(odd, caplog):
    registered = UploadIndex()
    with caplog.at_level(logging.ERROR):
        registered.replace([Upload.from_data({**upload().to_data(), **odd})])
        with pytest.raises(ControllerError, match="unknown action"):
            compiled(Assign("AUTH_a", "rot13"), registered=registered)


def test_an_uploaded_filter_describes_itself():
    told = {"name": "by", "type": "int", "choices": [1, 2], "default": 1}
    info = action_of(upload(revision=3, reverse=True, info={"parameters": [told], "stage": 9, "from_the_future": 1}))
    assert (info.version, info.reversible, info.on_put, info.on_get, info.places) == (3, True, True, False, PLACES)
    assert info.parameter("by").choices == (1, 2)
    assert action_of(replace(upload(), environment="storlet", reverse=True)).places == ("proxy",)
    with pytest.raises(DecodeError, match="cannot be read"):
        action_of(upload(info={"places": []}))


def test_periods_of_metrics_are_known_before_their_first_window():
    registered = UploadIndex()
    slow = Upload("SLOW", "native", "python", "", "0" * 64, 5, kind=METRIC_CODE, info={"period": 30})
    odd = Upload("ODD", "native", "python", "", "0" * 64, 5, kind=METRIC_CODE, info={"period": "x"})
    registered.replace([slow, odd])
    assert [registered.period(name) for name in ("SLOW", "ODD", "NODE_CPU", "PUTS_SEC")] == [30.0, 1.0, 10.0, 1.0]
