"""The trial of uploaded filters: accepted ones, and the reason of each refused one."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from sluice_code.native_trial import Trial, try_code
from sluice_core.describe import NBDKIT
from sluice_core.messages.uploads import FILTER_CODE, Revision

pytestmark = pytest.mark.service

BY = {"name": "rot-by", "type": "int", "required": True, "minimum": 5, "maximum": 255}
CONTENT = {"reversible": True, "parameters": [BY]}
PASSES = {"reversible": False, "changes_content": False}


@pytest.fixture
def try_filter(tmp_path):
    """Tries code, which must read data of earlier code, and returns the reason why it cannot be used."""

    def tried(code, info, *earlier):
        digests = [hashlib.sha256(one).hexdigest() for one in (code, *earlier)]
        for digest, one in zip(digests, (code, *earlier), strict=True):
            (tmp_path / digest).write_bytes(one)
        before = tuple(Revision(number, digest, 1) for number, digest in enumerate(digests[1:], 1))
        trial = Trial(FILTER_CODE, str(tmp_path), digests[0], "rot", "", before, NBDKIT, info)
        return try_code(trial).reason

    return tried


@pytest.fixture
def other_headers(tmp_path):
    """nbdkit's headers with a version that does not exist."""
    command = ["cc", "-E", "-x", "c", "-"]
    found = subprocess.run(command, input="#include <nbdkit-filter.h>\n", capture_output=True, text=True, check=True)
    source = next(line.split('"')[1] for line in found.stdout.splitlines() if "nbdkit-version.h" in line)
    folder = tmp_path / "headers"
    folder.mkdir()
    for header in Path(source).parent.glob("nbdkit*.h"):
        text = header.read_text()
        if header.name == "nbdkit-version.h":
            text = "\n".join(
                '#define NBDKIT_VERSION_STRING "1.0.99"' if "define NBDKIT_VERSION_STRING" in line else line
                for line in text.splitlines()
            )
        (folder / header.name).write_text(text + "\n")
    return folder


def test_a_correct_filter_passes_and_reads_what_its_earlier_revision_stored(try_filter, uploadable):
    assert try_filter(uploadable("rot"), CONTENT, uploadable("rot", "-DEXTRA=256")) == ""


def test_a_revision_that_cannot_read_what_an_earlier_one_stored_is_refused(try_filter, uploadable):
    assert "that revision 1 stored byte" in try_filter(uploadable("rot"), CONTENT, uploadable("rot", "-DEXTRA=1"))


def probe(*code, reason):
    return pytest.param(code, PASSES, reason, marks=pytest.mark.probe)


@pytest.mark.parametrize(
    ("code", "info", "reason"),
    [
        (("rot", "-DZEROES_PASS"), CONTENT, "after zero requests byte"),
        (("rot",), {**PASSES, "parameters": [BY]}, "behind it, although it says that it changes no content, byte"),
        (("faulty", "-DSHRINKS"), PASSES, "a volume of 8388608 bytes shows 8388096 through it"),
        (("faulty", "-DFORGETS"), PASSES, "after writes here and there byte"),
        probe("faulty", "-DSTAYS", reason="it does not end within 8 s after SIGTERM"),
        (("faulty", "-DKEEPS_IN_MEMORY"), {"reversible": True}, "after a restart byte"),
        (("faulty", "-DCRASHES_AT_LOAD"), PASSES, "the filter does not serve: it was ended by SIGSEGV"),
        probe("faulty", "-DHANGS", reason="no answer: timed out"),
    ],
)
def test_a_filter_that_breaks_its_word_is_refused_with_the_reason(try_filter, uploadable, code, info, reason):
    assert reason in try_filter(uploadable(*code), info)


def test_a_filter_of_another_version_of_nbdkit_is_refused_with_both_versions(try_filter, uploadable, other_headers):
    version = subprocess.run(["nbdkit", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    reason = try_filter(uploadable("rot", f"-I{other_headers}"), CONTENT)
    assert "1.0.99" in reason
    assert version in reason
