"""The example of the README runs."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_request_in_the_readme_is_counted_and_delivered():
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    scope = {}
    exec(compile(example, str(README), "exec"), scope)  # noqa: S102  our own page, nobody's input
    assert [path for path, _, _ in scope["rows"]] == ["AUTH_test", "AUTH_test/logs"]
    assert scope["meter"].changed() == []
