"""The classification of uploads from outside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_aio.demo.watch import IN_FORCE, INSIDE, NOT_IN_FORCE, OUTSIDE, UNDECIDABLE, UNSETTLED, Poll, says, verdict


def polls(*words):
    """A response each second, requested 0.1 s before and received 0.1 s after; a change at each new word."""
    found, epoch = [], 0
    for second, word in enumerate(words):
        if found and found[-1].says != word:
            epoch += 1
        found.append(Poll(second - 0.1, second + 0.1, word, epoch))
    return found


RUN = polls(NOT_IN_FORCE, NOT_IN_FORCE, IN_FORCE, IN_FORCE, IN_FORCE, UNSETTLED, NOT_IN_FORCE, NOT_IN_FORCE)


@pytest.mark.parametrize(
    ("begin", "end", "wanted"),
    [
        (0.2, 0.8, OUTSIDE),
        (1.2, 1.8, UNDECIDABLE),  # set somewhere between two answers
        (2.95, 2.97, INSIDE),  # during an answer, both neighbours are equal
        (1.05, 1.3, UNDECIDABLE),
        (2.2, 2.8, INSIDE),
        (2.2, 3.8, INSIDE),
        (2.05, 2.06, UNDECIDABLE),  # the answer at 2 may be of a moment after it
        (3.2, 4.3, UNDECIDABLE),
        (4.2, 4.3, UNDECIDABLE),
        (5.2, 5.3, UNDECIDABLE),
        (6.2, 6.8, OUTSIDE),
        (1.2, 6.8, UNDECIDABLE),
        (-0.5, 0.2, UNDECIDABLE),  # before the first answer
        (6.5, 7.5, UNDECIDABLE),  # after the last one
    ],
)
def test_an_upload_is_judged_by_all_answers_around_it(begin, end, wanted):
    assert verdict(RUN, begin, end) == wanted


def test_off_and_on_between_two_answers_is_noticed_by_the_epoch():
    flapped = [Poll(0, 0.1, IN_FORCE, 1), Poll(1, 1.1, IN_FORCE, 3)]
    assert verdict(flapped, 0.4, 0.6) == UNDECIDABLE


def test_nothing_is_known_without_answers():
    assert verdict([], 1.0, 2.0) == UNDECIDABLE


@given(
    switches=st.lists(st.floats(0, 50), max_size=4).map(sorted),
    begin=st.floats(0, 50),
    length=st.floats(0, 3),
    moments=st.lists(st.tuples(st.floats(0, 60), st.floats(0, 0.3), st.floats(0, 0.3)), max_size=60),
)
def test_a_judgement_is_never_wrong(switches, begin, length, moments):
    def epoch(moment):
        return sum(switch <= moment for switch in switches)

    answers, clock = [], 0.0
    for moment, before, after in sorted(moments):
        truth = max(moment, clock + before)
        word = IN_FORCE if epoch(truth) % 2 else NOT_IN_FORCE
        answers.append(Poll(max(clock, truth - before), truth + after, word, epoch(truth)))
        clock = truth + after
    judged = verdict(answers, begin, begin + length)
    if judged != UNDECIDABLE:
        wanted = judged == INSIDE
        assert epoch(begin) == epoch(begin + length)
        assert (epoch(begin) % 2 == 1) is wanted


@pytest.mark.parametrize(
    ("state", "nodes", "total", "wanted"),
    [
        ("active", 1, 1, IN_FORCE),
        ("active", 0, 1, UNSETTLED),
        ("waiting", 1, 1, NOT_IN_FORCE),
        ("waiting", 0, 1, UNSETTLED),
        ("active", 0, 0, UNSETTLED),
    ],
)
def test_an_answer_counts_only_when_every_node_has_acknowledged(state, nodes, total, wanted):
    assert says({"state": state, "enforced": {"nodes": nodes, "total": total}}) == wanted
