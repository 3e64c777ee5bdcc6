"""csv_select as a storlet: the uploaded file and its dependency, in a Python without other packages."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_filters.api import Hint
from sluice_filters.csv.bundle import bundle
from sluice_filters.csv.select import CsvSelect
from sluice_filters.testing import cut, run

STORLET = Path(__file__).parents[3] / "storlets" / "csv_select_storlet.py"
DATA = b'id,name,age\n1,"Ada\nLovelace",36\n2,Grace,85\r\n3,"a ""b""",\n' * 50

#: Runs the storlet as Storlets' daemon does; -I and -S exclude installed packages.
DRIVER = """
import io, json, sys
sys.path.insert(0, sys.argv[1])
from csv_select_storlet import CsvSelect

class In(io.BytesIO):
    def get_metadata(self):
        return {"name": "people"}

class Out:
    def set_metadata(self, metadata):
        assert metadata == {"name": "people"}
    def write(self, data):
        sys.stdout.buffer.write(data)
    def close(self):
        sys.stdout.buffer.close()

assert "pyarrow" not in sys.modules
CsvSelect(None)([In(sys.stdin.buffer.read())], [Out()], json.loads(sys.argv[2]))
"""


@pytest.mark.parametrize(
    "params",
    [
        {"columns": "name,id", "where": "age > 40"},
        {"header": "ignore", "columns": "_2"},
        {"select": "where=name LIKE '%b%'"},
        {"multiline": "false", "header": "no", "where": "_3 IS NULL"},
        {"range": "bytes=100-900", "columns": "id"},
    ],
)
def test_the_storlet_gives_the_bytes_of_the_native_filter(params, tmp_path):
    (tmp_path / STORLET.name).write_bytes(STORLET.read_bytes())
    (tmp_path / "csv_select.zip").write_bytes(bundle())
    command = [sys.executable, "-I", "-S", "-c", DRIVER, str(tmp_path), json.dumps(params)]
    done = subprocess.run(command, input=DATA, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    wishes = {"X-Csv-Select": params.get("select", ""), "X-Csv-Range": params.get("range", "")}
    native = {name: value for name, value in params.items() if name not in ("select", "range")}
    if "multiline" in native:
        native["multiline"] = native["multiline"] == "true"
    expected = run(CsvSelect(native).reader(Hint(asked=wishes)), cut(DATA, 100))
    assert done.stdout == expected
    assert len(expected) not in (0, len(DATA))


def test_the_bundle_is_the_same_each_time():
    assert bundle() == bundle()
