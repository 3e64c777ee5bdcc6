"""Every measured row of a benchmark is in one table of the documentation."""

import json

import pytest
from docs.generated import outputs, results

MARKS = list(results.parts())
ROWS = json.loads((outputs.ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))["figures"]


def test_each_measured_row_stands_in_one_table():
    lines = [line for text in results.parts().values() for line in text.splitlines()]
    for row in ROWS:
        shown = [line for line in lines if line.startswith(f"| {row['name']} |") and row["measured"] in line]
        assert shown, row["name"]
    assert sum(line.startswith("| ") for line in lines if "| --- |" not in line) - len(MARKS) >= len(ROWS)


def test_a_table_says_when_and_on_what_its_rows_were_measured():
    for mark in MARKS[:-1]:
        assert "measured 20" in results.parts()[mark], mark


@pytest.mark.parametrize(
    ("row", "mark"),
    [("volume nbd device 1 MB reads", "results-volume-path"), ("volume nbd kill", "results-volume-faults")],
)
def test_the_longest_beginning_of_a_name_counts(row, mark):
    assert results.table_of(row) == mark


def test_a_row_without_a_table_is_refused():
    with pytest.raises(ValueError, match="row `unheard`: expected a table"):
        results.table_of("unheard")
