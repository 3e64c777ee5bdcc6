"""The commands of docs/admin/code.md, in their order, with its examples.

The examples of docs/admin/controllers.md are tried here.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[4] / "docs"
PAGE = (DOCS / "admin" / "code.md").read_text()
COMMANDS = [shlex.split(line) for line in PAGE.splitlines() if line.startswith("curl ")]


def asked(words):
    """Method, path and body."""
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    (path,) = [one.removeprefix("$SLUICE_URL") for one in words if one.startswith("$SLUICE_URL")]
    if "--data-binary" in words:
        return method, path, (DOCS / words[words.index("--data-binary") + 1].removeprefix("@")).read_bytes()
    return method, path, words[words.index("-d") + 1] if "-d" in words else None


def test_each_command_of_the_page_works(api, send_code):
    done = []
    for method, path, sent in map(asked, COMMANDS):
        if path.endswith("/rollback"):
            target = path.replace("/rollback", "/data")
            send_code(target, (DOCS / "examples" / f"{path.split('/')[-2]}.py").read_bytes() + b"# second\n")
        kind = "application/octet-stream" if isinstance(sent, bytes) else "application/json"
        more = {"data": sent, "content_type": kind} if sent is not None else {}
        answer = getattr(api, method.lower())(path, **more)
        assert answer.status_code in (200, 201), (path, answer.content)
        done.append(path.partition("?")[0].rpartition("/")[2])
    assert {"filters", "data", "rot13", "start", "stop", "instances", "policies", "rollback"} <= set(done)
    assert api.get("/filters/rot13").json()["revision"] == 3


@pytest.mark.parametrize("kind", ["filter", "metric", "controller"])
def test_the_page_names_what_code_may_import(kind):
    from sluice_code.loader import OFFERED

    sentence = re.sub(r"\s+", " ", PAGE)
    (told,) = re.findall(r"packages of the role's extra: ([^.]*)\.", sentence)
    (mine,) = [one for one in told.split(";") if f"{kind}s" in one]
    assert set(re.findall(r"`(\w+)`", mine)) == OFFERED[kind]


def test_the_page_names_the_limits():
    from sluice_controller.code.revisions import NATIVE_LIMIT
    from sluice_core.messages.uploads import REVISIONS

    assert (REVISIONS, NATIVE_LIMIT) == (10, 1 << 20)
    assert "at most 1 MiB" in PAGE
    assert "keeps the last ten revisions" in PAGE
