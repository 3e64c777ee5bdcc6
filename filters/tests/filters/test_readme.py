"""The examples of the README run."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_round_in_the_readme_runs():
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    scope = {}
    exec(compile(example, str(README), "exec"), scope)  # noqa: S102  our own page, nobody's input
    assert len(scope["stored"]) < len(scope["data"]) / 20
    assert scope["found"].stop - scope["found"].start < len(scope["stored"])
