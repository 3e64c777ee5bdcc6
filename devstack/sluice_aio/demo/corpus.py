"""Real files for uploads: the same choice on every run on one machine.

Mostly text (Python's standard library, the documentation below /usr/share/doc); among it files that
compression leaves alone, because they are tiny or compressed already.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import zstandard

#: The filter's default ``min_size``; smaller objects stay as they are.
MIN_SIZE: Final = 4096
_LARGEST: Final = 400_000
#: A file whose gain is near the filter's ``min_gain`` proves nothing, in either case.
_SURE_GAIN: Final = 0.8
_SURE_LOSS: Final = 0.99


@dataclass(frozen=True, slots=True)
class Sample:
    """One object to upload, with its expected content."""

    name: str
    body: bytes
    sha256: str
    md5: str
    shrinks: bool


def _gain(body: bytes) -> float:
    return len(zstandard.compress(body, 1)) / len(body)


def _sample(name: str, path: Path) -> Sample | None:
    """The file as an object, or None if it proves nothing."""
    body = path.read_bytes()
    if not 0 < len(body) <= _LARGEST:
        return None
    gain = _gain(body)
    if len(body) >= MIN_SIZE and _SURE_GAIN < gain < _SURE_LOSS:
        return None
    md5 = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return Sample(name, body, hashlib.sha256(body).hexdigest(), md5, len(body) >= MIN_SIZE and gain <= _SURE_GAIN)


def _files(root: Path, pattern: str) -> Iterator[Path]:
    for path in sorted(root.glob(pattern)):
        if path.is_file() and not path.is_symlink() and path.parent.name != "site-packages":
            yield path


def _candidates(root: Path, prefix: str, pattern: str, every: int) -> Iterator[Sample]:
    for path in islice(_files(root, pattern), 0, None, every):
        found = _sample(f"{prefix}/{path.relative_to(root)}", path)
        if found is not None:
            yield found


def choose(count: int) -> list[Sample]:
    """``count`` different objects, always the same: two of three big texts, the rest a mixture.

    Fewer only if the machine does not have so many files.
    """
    library = Path(sysconfig.get_path("stdlib"))
    docs = Path("/usr/share/doc")
    python = [one for pattern in ("*.py", "[a-su-z]*/*.py") for one in _candidates(library, "python", pattern, 1)]
    big = [one for one in python if one.shrinks]
    rest = [one for one in python if not one.shrinks][: count // 6]
    rest += islice(_candidates(docs, "doc", "*/changelog*.gz", 3), count // 6)
    papers = (one for one in _candidates(docs, "doc", "*/copyright", 5) if one.shrinks)
    texts = [*islice(papers, count // 6), *big]
    mixed = texts[: count - min(len(rest), count // 4)] + rest[: count // 4]
    # spread the small ones over the whole run
    return sorted(mixed, key=lambda one: hashlib.sha256(one.name.encode()).digest())[:count]
