"""The code that runs Swift's functional suite and compares its results, with small suites for tests."""

from __future__ import annotations

import configparser
import hashlib
import io
import tarfile

import pytest
from tests.support.swift_suite import __main__, disks, run
from tests.support.swift_suite import source as swift_suite_source
from tests.support.swift_suite.outcomes import Outcomes, differences
from tests.support.swift_suite.report import write_table
from tests.support.swift_suite.run import Suite
from tests.support.swift_suite.trials import TRIALS, trial_of

from sluice_aio.errors import LaunchError
from sluice_dsl.diagnostics import Reporter
from sluice_dsl.syntax.grammar import parse

FUNCTIONAL = """\
import os, pathlib, time, unittest

class TestThings(unittest.TestCase):
    def test_good(self):
        assert os.environ["SWIFT_TEST_IN_PROCESS"] == "0"
        assert "http://127.0.0.1:1" in pathlib.Path(os.environ["SWIFT_TEST_CONFIG_FILE"]).read_text()

    def test_bad(self):
        self.fail("it is bad")

    def test_left_out(self):
        raise unittest.SkipTest("not here")

    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)

    def test_at_second_try(self):
        mark = pathlib.Path(__file__).with_name("mark")
        seen = mark.exists()
        mark.touch()
        self.assertTrue(seen)

    def test_stuck(self):
        while STUCK:
            time.sleep(0.1)
"""


@pytest.fixture
def suite(tmp_path):
    def make(stuck=False):
        root = tmp_path / "root"
        for folder in ("test", "test/functional", "test/s3api"):
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / "__init__.py").touch()
        (root / "test/functional/tests.py").write_text(f"STUCK = {stuck}\n{FUNCTIONAL}")
        (root / "test/s3api/test_s3.py").write_text("def test_s3():\n    pass\n")
        work = tmp_path / "work"
        work.mkdir()
        return Suite(root, work, "http://127.0.0.1:1", lambda line: None)

    return make


def name(test):
    return f"test/functional/tests.py::TestThings::{test}"


def test_each_test_is_reported_by_its_worst_phase_and_failures_get_a_second_try(suite):
    outcomes = suite().run()
    assert outcomes.tests == {
        name("test_good"): "passed",
        name("test_bad"): "failed",
        name("test_left_out"): "skipped",
        name("test_subtests"): "failed",
        name("test_at_second_try"): "passed",
        name("test_stuck"): "passed",
        "test/s3api/test_s3.py::test_s3": "passed",
    }
    assert outcomes.flaky == [name("test_at_second_try")]
    assert "it is bad" in outcomes.why[name("test_bad")]
    assert "not here" in outcomes.why[name("test_left_out")]
    assert outcomes.failed == [name("test_bad"), name("test_subtests")]


def test_only_what_was_chosen_is_run(suite):
    chosen = [name("test_good"), "test/s3api/test_s3.py::test_s3"]
    assert set(suite().run(choice=chosen).tests) == set(chosen)


def test_an_expression_chooses_like_pytest(suite):
    assert set(suite().run("good or left").tests) == {name("test_good"), name("test_left_out")}


def test_a_test_that_never_ends_fails_and_the_others_are_run(suite, monkeypatch):
    monkeypatch.setattr(run, "PATIENCE", 2.0)
    outcomes = suite(stuck=True).run("good or stuck or s3 or left")
    assert outcomes.tests[name("test_stuck")] == "failed"
    assert "nothing happened" in outcomes.why[name("test_stuck")]
    assert outcomes.tests["test/s3api/test_s3.py::test_s3"] == "passed"


def test_a_suite_that_cannot_be_collected_is_an_error(suite, tmp_path):
    made = suite()
    (tmp_path / "root/test/s3api/test_s3.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(LaunchError, match=r"status 2, see .*pytest\.log"):
        made.run()


def test_the_configuration_names_every_user_that_the_suite_wants():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(run.test_conf("http://127.0.0.1:8"))
    func, s3 = parser["func_test"], parser["s3api_test"]
    assert func["auth_uri"] == "http://127.0.0.1:8/auth/v1.0"
    assert [func[f"username{number}"] for number in ("", 2, 3, 5, 6)] == [
        "tester",
        "tester2",
        "tester3",
        "tester5",
        "tester6",
    ]
    assert {s3[f"access_key{number}"].split(":")[0] for number in (1, 2, 3)} == {"test"}
    assert func["s3_access_key3"] == s3["access_key3"]


def outcomes(**tests):
    return Outcomes(tests, {test: "why" for test, outcome in tests.items() if outcome != "passed"}, [], {})


@pytest.mark.parametrize(
    ("ours", "plain", "lines"),
    [
        ({"a": "passed"}, {"a": "passed"}, []),
        ({"a": "failed"}, {"a": "failed"}, []),
        ({"a": "failed"}, {"a": "passed"}, ["a: failed, plain Swift: passed"]),
        ({"a": "skipped"}, {"a": "passed"}, ["a: skipped, plain Swift: passed"]),
        ({"a": "passed"}, {"a": "failed"}, ["a: passed, plain Swift: failed"]),
        ({}, {"a": "passed"}, ["a: missing, plain Swift: passed"]),
        ({"a": "passed", "b": "passed"}, {"a": "passed"}, ["b: passed, plain Swift: missing"]),
    ],
)
def test_every_difference_is_a_line(ours, plain, lines):
    assert differences(outcomes(**ours), outcomes(**plain)) == lines


def test_what_was_not_chosen_is_not_missed():
    ours = outcomes(a="passed")
    assert differences(ours, outcomes(a="passed", b="passed"), ours.tests) == []


def test_outcomes_come_back_from_their_file(tmp_path):
    written = outcomes(b="failed", a="passed")
    written.flaky.append("a")
    written.about["minutes"] = "8"
    written.save(tmp_path / "x" / "plain.json")
    assert Outcomes.load(tmp_path / "x" / "plain.json") == written
    with pytest.raises(LaunchError, match="record it"):
        Outcomes.load(tmp_path / "none.json")


def test_the_table_counts_what_was_recorded(tmp_path):
    for trial, results in {"plain": {"t": "passed", "u": "skipped"}, "b": {"t": "failed", "u": "skipped"}}.items():
        one = outcomes(**results)
        one.about |= {"minutes": "8.5", "day": "2026-01-01", "swift": "2.38.3"}
        one.save(tmp_path / f"{trial}.json")
    write_table(tmp_path)
    lines = (tmp_path / "RESULTS.md").read_text().splitlines()
    assert f"| b | {TRIALS['b'].title} | 0 | 1 | 1 | 0 | 1 | 8.5 | 2026-01-01 | 2.38.3 |" in lines
    assert f"| c | {TRIALS['c'].title} | not run |" in lines


def test_every_sentence_of_a_set_up_is_one():
    for trial in TRIALS.values():
        for sentence in trial.sentences:
            reporter = Reporter(sentence)
            assert len(parse(sentence, reporter)) == 1
            assert not reporter.all("error")
        assert trial.baseline is None or trial_of(trial.baseline).setup.parts == frozenset()
        assert trial.baseline is None or trial.setup.default_policy == trial_of(trial.baseline).setup.default_policy


def test_a_sample_is_the_same_for_one_seed_and_another_for_the_next(tmp_path, capsys):
    outcomes(**{f"t{number}": "passed" for number in range(100)}).save(tmp_path / "plain.json")

    def sample(seed):
        options = ["--setup", "a", "--sample", "10", "--seed", str(seed), "--results", str(tmp_path)]
        return __main__.chosen(__main__.parser().parse_args(options), TRIALS["a"])

    assert sample(1) == sample(1) != sample(2)
    assert len(set(sample(1))) == 10
    assert "10 of 100 tests, seed 2" in capsys.readouterr().out


def test_only_the_tests_of_the_distribution_are_unpacked(tmp_path, monkeypatch):
    archive = tmp_path / "swift-9.9.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for member in ("swift-9.9/test/functional/tests.py", "swift-9.9/swift/common/utils.py", "swift-9.9/setup.py"):
            info = tarfile.TarInfo(member)
            info.size = 1
            tar.addfile(info, io.BytesIO(b"#"))
    monkeypatch.setattr(swift_suite_source, "version", lambda project: "9.9")
    monkeypatch.setattr(swift_suite_source, "_download", lambda wanted, folder: archive)
    source = swift_suite_source.fetch(tmp_path / "cache")
    assert sorted(path.name for path in source.root.iterdir()) == ["SHA256", "test"]
    assert (source.root / "test/functional/tests.py").exists()
    assert source.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    archive.unlink()
    assert swift_suite_source.fetch(tmp_path / "cache") == source


def test_disks_of_an_unknown_kind_are_refused(tmp_path):
    with pytest.raises(LaunchError, match="`ext2`, expected xfs or memory"), disks.disks("ext2", tmp_path):
        raise AssertionError("there is no such disk")


def test_an_unknown_set_up_is_refused():
    with pytest.raises(LaunchError, match=r"`z`, expected one of plain, .*a, b"):
        trial_of("z")
