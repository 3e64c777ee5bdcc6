"""The library that templates speak HTTP with, in processes that are not like others."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "before", ["import eventlet; eventlet.monkey_patch()", "import trio", "pass"], ids=["eventlet", "trio", "plain"]
)
def test_templates_can_be_loaded_beside(before):
    code = f"{before}\nfrom sluice_motifs.templates.registry import load_templates\nassert 'url' in load_templates()\n"
    if before.startswith("import trio"):
        code += "import sys\nassert sys.modules['trio'] is trio\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
