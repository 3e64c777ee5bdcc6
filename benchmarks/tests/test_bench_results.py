import json

import pytest
from benchmarks import run
from benchmarks.bandwidth import objectives as bandwidth
from benchmarks.harness.figures import Figure, Partly
from benchmarks.harness.results import Results

from sluice_core.errors import PeerError

OLD = {"at": "2026-01-01 10:00 UTC", "cores": 2, "processor": "slow"}
NEW = {"at": "2026-02-01 10:00 UTC", "cores": 2, "processor": "fast"}


def figure(name, value=1.0, part=""):
    return Figure(name, "what", value, f"{value:g}", part=part)


def rows(results):
    return [(one.name, one.value, one.run) for one in results.figures]


def before():
    return Results.of_run(OLD, [figure("a", part="A"), figure("b", part="B"), figure("c", part="C")], {})


def test_a_run_of_one_part_replaces_its_rows_where_they_stood_and_keeps_the_others():
    found = [figure("b", 2.0, "B"), figure("b more", 3.0, "B")]
    after = before().merged(Results.of_run(NEW, found, {}), ["B"])
    assert rows(after) == [
        ("a", 1.0, OLD["at"]),
        ("b", 2.0, NEW["at"]),
        ("b more", 3.0, NEW["at"]),
        ("c", 1.0, OLD["at"]),
    ]
    assert after.runs == {OLD["at"]: OLD, NEW["at"]: NEW}


def test_a_row_that_a_part_has_no_longer_goes_away():
    after = before().merged(Results.of_run(NEW, [figure("other", part="B")], {}), ["B"])
    assert [one.name for one in after.figures] == ["a", "other", "c"]


def test_rows_that_could_not_be_measured_stay_with_their_run():
    old = Results.of_run(OLD, [figure("storm", part="B"), figure("floors", part="B")], {"C": "no disk"})
    after = old.merged(Results.of_run(NEW, [figure("floors", 2.0, "B")], {"B": "storm: needs root"}), ["B"])
    assert rows(after) == [("storm", 1.0, OLD["at"]), ("floors", 2.0, NEW["at"])]
    assert after.failed == {"C": "no disk", "B": "storm: needs root"}
    mended = after.merged(Results.of_run(NEW, [figure("storm", part="B")], {}), ["B"])
    assert mended.failed == {"C": "no disk"}


def test_a_row_of_another_part_with_the_same_name_stays():
    after = before().merged(Results.of_run(NEW, [figure("a", 2.0, "B")], {}), ["B"])
    assert rows(after) == [("a", 1.0, OLD["at"]), ("a", 2.0, NEW["at"]), ("c", 1.0, OLD["at"])]


def test_a_run_whose_rows_are_all_replaced_is_forgotten():
    found = [figure(name, 2.0, part) for name, part in (("a", "A"), ("b", "B"), ("c", "C"))]
    after = before().merged(Results.of_run(NEW, found, {}), ["A", "B", "C"])
    assert list(after.runs) == [NEW["at"]]


def test_results_of_before_there_were_parts_and_runs_are_merged_by_the_names_of_rows(tmp_path):
    file = tmp_path / "results.json"
    old = [{"name": name, "what": "what", "value": 1.0, "measured": "1"} for name in ("a", "b", "b", "c")]
    file.write_text(json.dumps({"machine": OLD, "figures": old, "failed": {}}))
    new = Results.of_run(NEW, [figure("b", 2.0, "B")], {})
    Results.load(file).merged(new, ["B"]).save(file)
    assert rows(Results.load(file)) == [("a", 1.0, OLD["at"]), ("b", 2.0, NEW["at"]), ("c", 1.0, OLD["at"])]


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setattr(run.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(run, "FIRST", {})
    monkeypatch.setattr(run, "ALONE", {})


def test_what_was_measured_before_a_row_failed_is_kept(tmp_path, monkeypatch, silent, capsys):
    def parted(scale):
        raise Partly("storm: needs root", [figure("floors")])

    monkeypatch.setattr(run, "LONG", {"bandwidth": parted})
    file = tmp_path / "results.json"
    words = ["--only", "bandwidth", "--json", str(file), "--folder", str(tmp_path)]
    assert run.main(words) == 1
    assert "FAILED bandwidth: storm: needs root" in capsys.readouterr().out
    found = Results.load(file)
    assert [(one.name, one.part) for one in found.figures] == [("floors", "bandwidth")]
    monkeypatch.setattr(run, "LONG", {"bandwidth": parted, "soak": lambda scale: [figure("soak")]})
    assert run.main(["--only", "soak", *words[2:]]) == 0
    found = Results.load(file)
    assert [one.name for one in found.figures] == ["floors", "soak"]
    assert found.failed == {"bandwidth": "storm: needs root"}


def test_bandwidth_gives_its_other_rows_when_one_fails(tmp_path, monkeypatch):
    def broken(row):
        raise PeerError("needs root")

    monkeypatch.setattr(bandwidth, "ROWS", {"good": lambda row: [figure("floors")], "storm": broken})
    with pytest.raises(Partly, match=r"^storm: needs root$") as caught:
        bandwidth.figures(run.Scale(tmp_path))
    assert [one.name for one in caught.value.figures] == ["floors"]


def test_pictures_lie_beside_the_results_and_there_are_none_without(tmp_path, monkeypatch, silent):
    seen = []
    monkeypatch.setattr(run, "LONG", {"bandwidth": lambda scale: seen.append(scale.pictures) or []})
    words = ["--only", "bandwidth", "--folder", str(tmp_path)]
    assert run.main([*words, "--json", str(tmp_path / "results.json")]) == 0
    assert run.main([*words, "--quick"]) == 0
    assert seen == [tmp_path / "pictures", None]
