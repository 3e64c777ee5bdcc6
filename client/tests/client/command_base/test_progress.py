"""An upload that shows its progress."""

import io
import json
import os
import pty
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from sluice_client import Client
from sluice_client.command_base.code_crud import Progress


def test_a_terminal_sees_how_far_an_upload_is_and_only_that(stub, tmp_path):
    (tmp_path / "code").write_bytes(b"x" * 1_000_000)
    stub.enqueue(200, {"keyword": "x"})
    terminal = io.StringIO()
    with (tmp_path / "code").open("rb") as file, Client(stub.url) as client:
        progress = Progress(file, terminal)
        client.upload_filter("x", progress)
        progress.end()
    assert stub.requests[0].body == b"x" * 1_000_000
    shown = terminal.getvalue()
    assert shown.endswith(f"\r[{'#' * 30}] 100% of 1000000 bytes\n")
    shares = [int(line.split("] ")[1].split("%")[0]) for line in shown.strip().split("\r") if line]
    assert shares == sorted(shares)
    assert shares[0] < 10


def test_an_empty_file_is_sent_as_one(stub, tmp_path):
    (tmp_path / "code").touch()
    stub.enqueue(200, {"keyword": "x"})
    with (tmp_path / "code").open("rb") as file, Client(stub.url) as client:
        client.upload_filter("x", Progress(file, io.StringIO()))
    assert (stub.requests[0].body, stub.requests[0].headers["Content-Length"]) == (None, "0")


def test_progress_is_shown_on_a_terminal_only(stub, tmp_path):
    (tmp_path / "code").write_bytes(b"x" * 100_000)
    argv = [sys.executable, "-m", "sluice_client", "--url", stub.url, "--json", "filter", "upload", "x"]
    ours, theirs = pty.openpty()
    for stderr in (theirs, subprocess.PIPE):
        stub.enqueue(200, {"keyword": "x", "created": 0})
        done = subprocess.run(
            [*argv, str(tmp_path / "code")], stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=60
        )
        assert (done.returncode, json.loads(done.stdout), done.stderr or "") == (0, {"keyword": "x", "created": 0}, "")
    assert b"100% of 100000 bytes" in os.read(ours, 1 << 16)
    os.close(theirs)
    os.close(ours)


@given(content=st.binary(max_size=300), sizes=st.lists(st.integers(1, 100), max_size=10))
def test_the_progress_wrapper_reads_like_its_file(tmp_path_factory, content, sizes):
    path = tmp_path_factory.mktemp("progress") / "file"
    path.write_bytes(content)
    with path.open("rb") as file, path.open("rb") as plain:
        progress = Progress(file, io.StringIO())
        assert len(progress) == len(content)
        assert [progress.read(size) for size in sizes] == [plain.read(size) for size in sizes]
        assert progress.tell() == plain.tell()
        progress.seek(0)
        assert b"".join(progress) == content
