"""``python -I -m sluice_filters.trial.trial``: checks an uploaded native filter against ``sluice_filters.api``.

It runs in a child process (``sluice_code.native_trial``), with Swift's interpreter on nodes.  It checks the description
of the class, its constructor, and its output for a few samples.  For a reversible filter it checks that stored samples
decode, as a whole and by ranges, for every split; that missing and additional bytes are detected; and that it decodes
samples that earlier revisions stored.  Earlier revisions that do not work here themselves are skipped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sluice_code.code_store import BadUpload
from sluice_code.loader import load_class, refuse_failures
from sluice_code.native_trial import Trial, Verdict, serve_trial
from sluice_core.describe import NATIVE
from sluice_core.errors import SluiceError
from sluice_core.messages.uploads import Revision
from sluice_filters.api import BadParameter, Filter, FilterError, Hint, HostServices
from sluice_filters.chain import ChainEncoder, Records, chain_decoder, read_range
from sluice_filters.pipe import cut, run
from sluice_filters.trial.native import declared_fields, unfit_reason
from sluice_filters.trial.requests import try_requests

_TEXT: Final = b"the quick brown fox, again and again\n" * 2800
_NOISE: Final = hashlib.shake_256(b"what nobody can compress").digest(100_000)
_SHORT: Final = _TEXT[:300]
SAMPLES: Final = (b"", b"x", _SHORT, _TEXT, _NOISE)
#: Sizes of the pieces of samples; single bytes only for short ones.
_PIECES: Final = (1000, 65_536)
#: Attributes of files hold some 2 KB of records, of all filters of an object.
_LARGEST_RECORD: Final = 2048
_KEY: Final = hashlib.sha256(b"of trials, secret from nobody").digest()


class _Keys:
    """A ring with a key that is not secret: the encoded samples are discarded."""

    def active(self) -> str:
        return "trial"

    def secret(self, key_id: str) -> bytes:
        return _KEY


def try_filter(trial: Trial, code: bytes) -> Verdict:
    """
    :raises BadUpload: when the code fails the trial
    """
    kind: type[Filter] = load_class(code, trial.sha256, Filter, trial.main)
    with refuse_failures("what it says of itself"):
        fault = unfit_reason(kind, trial.keyword)
        if fault:
            raise BadUpload(fault)
        info = declared_fields(kind.info)
    try:
        _check_contract(kind, trial)
    except BadUpload as error:
        raise BadUpload(f"filter `{kind.info.keyword}`: {error}") from error
    return Verdict("", kind.__name__, info)


def _check_contract(kind: type[Filter], trial: Trial) -> None:
    """Check the filter against the contract."""
    newest = max((one.number for one in trial.earlier), default=0) + 1
    bound = _with_trial_keys(kind, newest)
    made = _made(bound)
    if made is not None:
        _check_directions(made, bound)
    for revision in trial.earlier:
        _check_earlier_revision(revision, bound, Path(trial.folder))


def _with_trial_keys(kind: type[Filter], revision: int) -> type[Filter]:
    """Return ``kind`` bound as in a host, with the keys of a trial."""
    info = replace(kind.info, version=revision, environment=NATIVE)
    lent = kind.bound(HostServices(keys=_Keys()))
    return type(kind.__name__, (lent,), {"info": info})


def _made(kind: type[Filter]) -> Filter | None:
    """Return an instance with default parameters; None when it has required ones."""
    with refuse_failures("it cannot be made with its defaults"):
        try:
            return kind()
        except BadParameter:
            if not any(one.required for one in kind.info.parameters):
                raise
    return None


def _check_directions(made: Filter, kind: type[Filter]) -> None:
    info = kind.info
    if info.reversible:
        for data in SAMPLES:
            for pieces in _cuts(data):
                _round_trip(made, kind, data, pieces)
        _damage(made, kind)
        if info.random_access:
            _ranges(made, kind)
    elif info.on_put and not info.on_request:
        for data in SAMPLES:
            _pass(made, data)
    if info.on_get and not info.on_request:
        for data in SAMPLES:
            _read(made, data)
    if info.on_request:
        with refuse_failures("accompanying a request"):
            try_requests(made)


# -- reversible filters


def _cuts(data: bytes) -> Iterator[list[bytes]]:
    sizes = (1, 7) if len(data) <= len(_SHORT) else _PIECES
    yield [data]
    yield [data[:1], data[1:]]
    for size in sizes:
        yield list(cut(data, size))


def _encode(made: Filter, data: bytes, pieces: Iterable[bytes]) -> tuple[bytes, Records]:
    """Return stored bytes and records, after a round trip as JSON."""
    with refuse_failures(f"encoding {len(data)} bytes"):
        chain = ChainEncoder([made], _hint(data))
        stored = run(chain, pieces)
        text = json.dumps(chain.records())
    if chain.done:
        raise BadUpload("its encoder says that it is done, before the end of what it is to store")
    if len(text) > _LARGEST_RECORD:
        raise BadUpload(f"its record of {len(data)} bytes takes {len(text)}, expected at most {_LARGEST_RECORD}")
    records: Records = json.loads(text)
    return stored, records


def _transformed(made: Filter, samples: Iterable[bytes]) -> Iterator[tuple[bytes, bytes, Records]]:
    """Yield the ``samples`` that it changes, with stored bytes and records."""
    for data in samples:
        stored, records = _encode(made, data, [data])
        if records:
            yield data, stored, records


def _hint(data: bytes) -> Hint:
    return Hint(len(data), "text/plain", "trial.txt", "AUTH_trial")


def _round_trip(made: Filter, kind: type[Filter], data: bytes, pieces: Iterable[bytes]) -> None:
    stored, records = _encode(made, data, pieces)
    if not records:
        if stored != data:
            raise BadUpload(f"it changes {len(data)} bytes, but gives no record of that")
        return
    with refuse_failures(f"its record of {len(data)} bytes"):
        size = kind.plain_size(records[0]["r"])
    if size != len(data):
        raise BadUpload(f"its record of {len(data)} bytes says that they are {size}")
    for again in _cuts(stored):
        if _decoded(kind, records, again, len(data)) != data:
            raise BadUpload(f"what it decodes of {len(data)} bytes are others than it encoded")


def _decoded(kind: type[Filter], records: Records, pieces: Iterable[bytes], size: int) -> bytes:
    with refuse_failures(f"decoding {size} bytes"):
        return run(chain_decoder(records, {kind.info.keyword: kind}), pieces)


def _damage(made: Filter, kind: type[Filter]) -> None:
    """Check that damage is detected; where it is not, the length must show it, as hosts check that."""
    for data, stored, records in _transformed(made, (_SHORT, _TEXT)):
        for bad in (stored[:-1], stored[: len(stored) // 2]):
            given = _outcome(kind, records, bad)
            if given is not None and not (len(given) < len(data) and data.startswith(given)):
                raise BadUpload("stored bytes that are cut off are not noticed by its decoder, expected CorruptData")
        given = _outcome(kind, records, stored + b"x")
        if given is not None and not given.startswith(data):
            raise BadUpload("a stored byte too much is not noticed by its decoder, expected CorruptData")
        for place in (0, len(stored) // 2, len(stored) - 1):
            bad = stored[:place] + bytes((stored[place] ^ 0xFF,)) + stored[place + 1 :]
            given = _outcome(kind, records, bad)
            if given is not None and len(given) != len(data):
                raise BadUpload(f"of damaged bytes it decodes {len(given)} instead of {len(data)}, without a word")


def _outcome(kind: type[Filter], records: Records, stored: bytes) -> bytes | None:
    """Return the decoded bytes; None when the damage was detected, which only a ``FilterError`` may report."""
    with refuse_failures("decoding damaged bytes, where CorruptData is expected"):
        try:
            return run(chain_decoder(records, {kind.info.keyword: kind}), [stored])
        except FilterError:
            return None


def _ranges(made: Filter, kind: type[Filter]) -> None:
    known = {kind.info.keyword: kind}
    for data, stored, records in _transformed(made, (b"x", _SHORT, _TEXT, _NOISE)):
        marks = sorted({0, 1, len(data) // 3, len(data) // 2, len(data) - 1, len(data)})
        for start, stop in ((one, two) for one in marks for two in marks if one < two):
            with refuse_failures(f"reading the bytes {start} to {stop} of {len(data)}"):
                given = read_range(stored, records, known, start, stop)
            if given != data[start:stop]:
                raise BadUpload(f"the bytes {start} to {stop} of {len(data)} are others when read alone")


def _check_earlier_revision(revision: Revision, kind: type[Filter], folder: Path) -> None:
    """Check that an object of an earlier revision stays readable."""
    code = (folder / revision.sha256).read_bytes()
    try:
        older: type[Filter] = load_class(code, revision.sha256, Filter, revision.main)
        if unfit_reason(older, kind.info.keyword) or not older.info.reversible:
            return
        made = _with_trial_keys(older, revision.number)()
        kept = list(_transformed(made, SAMPLES))
    except SluiceError:
        return  # it stores no sample here
    if not kind.info.reversible:
        raise BadUpload(f"it cannot undo what revision {revision.number} stored, since it is not reversible")
    for data, stored, records in kept:
        with refuse_failures(f"undoing what revision {revision.number} stored"):
            given = run(chain_decoder(records, {kind.info.keyword: kind}), [stored])
        if given != data:
            raise BadUpload(f"it gives other bytes back than revision {revision.number} was given")


# -- irreversible filters


def _pass(made: Filter, data: bytes) -> None:
    """Check a filter that runs on PUT and is not reversible."""
    with refuse_failures(f"encoding {len(data)} bytes"):
        stream = made.encoder(_hint(data))
        out = run(stream, [data])
        record: Any = stream.record()
    if record is not None:
        raise BadUpload("it gives a record of what it did, but says that it cannot be undone")
    if not made.info.changes_content and out != data:
        raise BadUpload("it changes what is stored, but does not say so in `changes_content`")


def _read(made: Filter, data: bytes) -> None:
    """Check a read-time filter; it may refuse samples with an error of Sluice."""
    out = data
    with refuse_failures(f"reading {len(data)} bytes"), contextlib.suppress(SluiceError):
        hint = _hint(data)
        if made.reads(hint):
            made.span(hint)
            out = run(made.reader(hint), [data])
    if not made.info.changes_content and out != data:
        raise BadUpload("it changes what is read, but does not say so in `changes_content`")


if __name__ == "__main__":
    serve_trial(try_filter)
