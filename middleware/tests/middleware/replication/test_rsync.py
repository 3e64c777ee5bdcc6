"""The command line of a run of rsync, the division of a job into runs, and their order."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_middleware.replication.rsync_throttle import (
    FASTEST,
    LEAD,
    RUN_SECONDS,
    is_short,
    limited_command,
    parse_bwlimit,
    run_rate,
    split_runs,
    suffix_sizes,
)
from sluice_middleware.swift import green

MB = 1024 * 1024
ARGUMENTS = ["rsync", "--recursive", "--bwlimit=0", "/srv/node/sda/objects/7/abc", "rsync://there/object/sda/objects/7"]


# -- the command line ---------------------------------------------------------------------------------


def told(rate, configured="0"):
    made = limited_command([one.replace("=0", f"={configured}") for one in ARGUMENTS], rate, "/tmp/log")  # noqa: S108
    return next(one for one in made if one.startswith("--bwlimit")).removeprefix("--bwlimit=")


@pytest.mark.parametrize(
    ("rate", "configured", "expected"),
    [
        (None, "0", "0"),
        (None, "1.5m", "1.5m"),
        (5e6, "0", "4882"),
        (5e6, "100", "100"),
        (5e6, "1GB", "4882"),
        (5e6, "what", "4882"),
        (100.0, "0", "1"),
        (0.0, "0", "1"),
    ],
)
def test_the_smaller_of_the_rate_and_what_is_configured_goes_on_the_command_line(rate, configured, expected):
    assert told(rate, configured) == expected


def test_added_arguments_precede_sources_and_target():
    made = limited_command(ARGUMENTS, 1e6, "/tmp/log")  # noqa: S108
    assert made[0] == "rsync"
    assert made[-2:] == ARGUMENTS[-2:]
    assert [one for one in made if "log-file" in one] == made[1:3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", None),
        ("", None),
        ("x", None),
        ("1000", 1024e3),
        ("1.5m", 1.5 * MB),
        ("2MB", 2e6),
        ("3KiB", 3072),
        ("512b", 512),
    ],
)
def test_bwlimit_is_parsed_as_rsync_parses_it(text, expected):
    assert parse_bwlimit(text) == expected


# -- runs -----------------------------------------------------------------------------------------------


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 10**9)), st.floats(1, 1e9))
def test_runs_hold_every_suffix_once_and_last_no_longer_than_they_should(sizes, rate):
    runs = list(split_runs(sizes, rate))
    assert [suffix for run in runs for suffix in run] == list(sizes)
    for run in runs:
        assert len(run) == 1 or sum(sizes[suffix] for suffix in run) <= rate * RUN_SECONDS


@given(st.integers(0, 10**12), st.floats(1, 1e9))
def test_a_run_ends_no_more_than_its_lead_too_early(size, rate):
    found = run_rate(size, rate)
    assert rate <= found <= FASTEST * rate * 1.000001
    assert size / rate - size / found <= LEAD * 1.000001 + 1e-15 * size / rate  # the precision of floats
    assert is_short(size, rate) == (size <= LEAD * rate)


def test_a_run_of_unknown_size_takes_turns_and_has_no_lead():
    assert run_rate(math.inf, 1e6) == 1e6
    assert not is_short(math.inf, 1e6)


def test_sizes_are_those_of_all_files_and_what_is_gone_is_left_out(tmp_path):
    (tmp_path / "abc" / "hash").mkdir(parents=True)
    (tmp_path / "abc" / "hash" / "1.data").write_bytes(b"x" * 1000)
    (tmp_path / "abc" / "hash" / "1.meta").write_bytes(b"")
    (tmp_path / "def").mkdir()
    assert suffix_sizes(tmp_path, ["abc", "gone", "def"]) == {"abc": 1000, "def": 0}


def test_the_lock_is_fifo_and_a_killed_waiter_leaves_it():
    turns, order = green.FifoLock(), []

    def go(name):
        with turns:
            order.append(name)
            green.InterruptibleSleep().wait(0.01)
            order.append(name)

    threads = [green.start_green(go, name) for name in "abcd"]
    green.InterruptibleSleep().wait(0.005)
    threads[1].kill()
    for one in (threads[0], *threads[2:]):
        one.wait()
    assert order == list("aaccdd")
