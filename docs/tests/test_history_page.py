"""The page about the history of metrics is correct: its numbers, its names, its scrape configuration."""

import re
from pathlib import Path

import pytest
import yaml
from tests.support.cluster.prometheus import ENDPOINTS

from sluice_actors.settings import OPTIONS
from sluice_controller.metric_history.selection import MOST_POINTS
from sluice_metric_history.records import BANDWIDTH_METRICS
from sluice_metric_history.resolutions import FRACTIONS, RESOLUTIONS, SERIES_BYTES

PAGE = (Path(__file__).parents[1] / "admin" / "history.md").read_text(encoding="utf-8")


def test_its_numbers_are_those_of_the_code():
    budget = next(one.default for one in OPTIONS if one.name == "history_megabytes")
    series = int(budget * 1e6 / SERIES_BYTES)
    assert f"({budget} by default)" in PAGE
    assert f"{series // 10 * 10:,} series, whatever" in PAGE
    assert f"1,000 series cost {SERIES_BYTES / 1000:.0f} MB at most" in PAGE
    assert f"at most {MOST_POINTS:,}" in PAGE
    assert f"1/{FRACTIONS:,} of the way" in PAGE
    assert [one.seconds for one in RESOLUTIONS] == [600, 6 * 3600, 7 * 86_400]


@pytest.mark.parametrize("metric", sorted(BANDWIDTH_METRICS))
def test_each_metric_of_bandwidth_is_in_the_table(metric):
    kind = metric.replace("PUT_", "GET_").replace("REPLICATION_", "GET_")
    begin, _, quantity = kind.rpartition("_")
    rows = [row for row in PAGE.splitlines() if row.startswith(f"| `{begin}_MEASURED`")]
    assert len(rows) == 1
    assert f"_{quantity}`" in rows[0]


def test_all_endpoints_are_scraped():
    (text,) = re.findall(r"^```yaml\n(scrape_configs:.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    scraped = yaml.safe_load(text)["scrape_configs"]
    assert {one["job_name"]: one.get("metrics_path", "/metrics") for one in scraped} == ENDPOINTS
