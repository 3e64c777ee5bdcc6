"""Code that was uploaded under earlier names still loads, passes its trial and has the same effect."""

import base64
import hashlib

import pytest
from tests.compatibility.conftest import read

from sluice_code.loader import load_class
from sluice_core.control import Controller
from sluice_filters.api import Filter
from sluice_metrics.api import Metric

CODE = {name: base64.b64decode(code) for name, code in read("code").items()}


@pytest.mark.parametrize(
    ("file", "base", "name"),
    [
        ("rot13.py", Filter, "rot13"),
        ("receipts.py", Filter, "receipts"),
        ("deletes_sec.py", Metric, "DELETES_SEC"),
        ("spread.py", Controller, "spread"),
    ],
)
def test_uploaded_code_loads(file, base, name):
    code = CODE[file]
    loaded = load_class(code, hashlib.sha256(code).hexdigest(), base)
    assert (getattr(loaded.info, "keyword", None) or loaded.info.name) == name


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (
            "sluice_core.describe",
            "FILTER PROXY STORAGE_NODE NATIVE ActionInfo MetricInfo Parameter Scalar PLACES ENVIRONMENTS",
        ),
        ("sluice_core.control", "Assign Controller ControllerInfo Observation"),
        ("sluice_filters.api", "Filter Stream Hint CorruptData FilterError BadParameter"),
        ("sluice_filters.visits", "Visit Call"),
        ("sluice_metrics.api", "Metric Response HIT MISS WITH_OBJECTS"),
        ("sluice_filters.testing", "FilterContract"),
        ("sluice_metrics.testing", "MetricContract"),
    ],
)
def test_names_that_uploaded_code_imports_stay(module, names):
    imported = __import__(module, fromlist=["*"])
    assert [name for name in names.split() if not hasattr(imported, name)] == []
