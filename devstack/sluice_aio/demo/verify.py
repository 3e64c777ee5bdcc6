"""Checks after the workload: the clients' view, and the files on the disks."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.demo.upload import Upload
from sluice_aio.demo.watch import INSIDE, OUTSIDE, UNDECIDABLE

_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One condition, and whether it was true."""

    name: str
    good: bool
    detail: str


def _check(name: str, faults: Sequence[str], fine: str) -> Check:
    shown = "; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else "")
    return Check(name, not faults, shown or fine)


def check_uploads(uploads: Sequence[Upload]) -> Check:
    """Every PUT was stored."""
    faults = [f"`{one.sample.name}` got {one.status or 'no answer'}" for one in uploads if one.status != 201]
    return _check("every upload answered 201", faults, f"{len(uploads)} objects")


def _compare(swift: SwiftHttp, container: str, upload: Upload) -> tuple[list[str], list[str]]:
    """Differences of GET and of HEAD."""
    sample = upload.sample
    path = f"{container}/{sample.name}"
    got = swift.request("GET", path)
    head = swift.request("HEAD", path)
    downloads, heads = [], []
    if got.status != 200 or hashlib.sha256(got.body).hexdigest() != sample.sha256:
        downloads.append(f"`{sample.name}` came back different (status {got.status})")
    for answer in (got, head):
        size, etag = answer.headers.get("content-length"), answer.headers.get("etag", "").strip('"')
        if (size, etag) != (str(len(sample.body)), sample.md5):
            heads.append(f"`{sample.name}` shows size {size}, ETag {etag}")
    return downloads, heads


def check_answers(swift: SwiftHttp, container: str, uploads: Iterable[Upload]) -> list[Check]:
    """Every object comes back as it was, under its own size and ETag."""
    downloads: list[str] = []
    heads: list[str] = []
    stored = [one for one in uploads if one.status == 201]
    with ThreadPoolExecutor(6) as pool:
        for got, head in pool.map(lambda one: _compare(swift, container, one), stored):
            downloads += got
            heads += head
    return [
        _check("every download has its SHA-256", downloads, f"{len(stored)} objects"),
        _check("HEAD and GET show original size and ETag", heads, f"{len(stored)} objects"),
    ]


def check_listing(swift: SwiftHttp, container: str, uploads: Iterable[Upload]) -> Check:
    """The container listing shows each object's own size and MD5."""
    wanted = {one.sample.name: (len(one.sample.body), one.sample.md5) for one in uploads if one.status == 201}
    listed = {row["name"]: (row["bytes"], row["hash"]) for row in swift.listing(container)}
    faults = [f"`{name}` is listed as {listed.get(name)}" for name in wanted if listed.get(name) != wanted[name]]
    faults += [f"`{name}` is listed, but was not uploaded" for name in listed if name not in wanted]
    return _check("the listing shows original sizes and MD5", faults, f"{len(listed)} rows")


def expected_smaller(upload: Upload, judged: str) -> bool | None:
    """Whether the object's files must be smaller than the object; None if undecidable."""
    if not upload.sample.shrinks:
        return False
    return {INSIDE: True, OUTSIDE: False}.get(judged)


def check_disks(uploads: Sequence[Upload], verdicts: Mapping[str, str], sizes: Mapping[str, Sequence[int]]) -> Check:
    """The three files of an object are smaller for exactly those that the policy covered."""
    faults = []
    for upload in uploads:
        if upload.status != 201:
            continue
        name, size = upload.sample.name, len(upload.sample.body)
        files = sizes.get(name, ())
        if len(files) != _REPLICAS:
            faults.append(f"`{name}` has {len(files)} files on the disks")
            continue
        smaller = expected_smaller(upload, verdicts[name])
        fitting = len(set(files)) == 1 and files[0] <= size  # replicas are equal, and none ever grows
        if not fitting or (smaller is not None and (files[0] < size) is not smaller):
            what = f"{verdicts[name]}, {'' if upload.sample.shrinks else 'not '}compressible"
            faults.append(f"`{name}` ({what}) has {size} bytes, stored {list(files)}")
    smaller_ones = sum(max(sizes.get(one.sample.name, [0])) < len(one.sample.body) for one in uploads)
    return _check("smaller on disk exactly where it was enforced", faults, f"{smaller_ones} objects are smaller")


def check_coverage(uploads: Sequence[Upload], verdicts: Mapping[str, str]) -> Check:
    """The run judged enough uploads on both sides to mean anything."""
    counts = Counter(verdicts[one.sample.name] for one in uploads if one.sample.shrinks)
    faults = []
    if counts[INSIDE] < 10:
        faults.append(f"only {counts[INSIDE]} compressible uploads began while it was enforced")
    if counts[OUTSIDE] < 5:
        faults.append(f"only {counts[OUTSIDE]} compressible uploads began while it was not")
    total = Counter(verdicts.values())
    if total[UNDECIDABLE] > len(verdicts) // 4:
        faults.append(f"{total[UNDECIDABLE]} of {len(verdicts)} uploads could not be judged")
    detail = f"{total[INSIDE]} inside, {total[OUTSIDE]} outside, {total[UNDECIDABLE]} undecidable"
    return _check("uploads fell on both sides", faults, detail)
