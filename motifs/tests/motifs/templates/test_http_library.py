"""The HTTP library of templates, beside a trio that cannot be imported (eventlet's sockets)."""

import subprocess
import sys

CODE = """
import sys
from sluice_motifs.templates.registry import load_templates
assert "url" in load_templates()
assert sys.modules.get("trio") is expected
"""


def loaded(tmp_path, before):
    (tmp_path / "trio.py").write_text("raise AttributeError('no sendmsg')\n")
    code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{before}\n{CODE}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_templates_are_loaded_beside_a_trio_that_cannot_be(tmp_path):
    ended = loaded(tmp_path, "expected = None")
    assert ended.returncode == 0, ended.stderr


def test_a_trio_that_is_there_stays(tmp_path):
    ended = loaded(tmp_path, "import types\nexpected = sys.modules['trio'] = types.ModuleType('trio')")
    assert ended.returncode == 0, ended.stderr
