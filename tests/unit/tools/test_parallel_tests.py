"""Parallel test processes: which tests stay together."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OPTIONS = ("-v", "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "-p", "no:cacheprovider")


@pytest.mark.probe
def test_the_tests_of_a_file_run_in_one_process():
    files = ("dsl/tests/syntax/test_percent.py", "dsl/tests/syntax/test_units.py")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *files], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = re.findall(r"^\[(gw\d)\].* PASSED (\S+?)::", run.stdout, re.MULTILINE)
    assert {file for _, file in found} == set(files)
    assert len(set(found)) == 2, "a file's tests ran in two processes"
