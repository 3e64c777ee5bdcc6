"""Where an image of Ceph lies: which OSDs hold its objects, and how much of it each of them.

An image is cut into objects, whose OSDs follow from their names alone, whether they were written or not.  A large
image has many: some of them are asked for, evenly spread.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sluice_block.konnector.datapath import processes
from sluice_block.konnector.datapath.sources.rbd_image import RbdImage
from sluice_core.errors import DecodeError
from sluice_volumes.messages import OsdShare, RbdLocality

#: Objects that are asked for, some 40 ms each: a share of one half is then known to 12 % of the objects, 19 times
#: in 20.
SAMPLE: Final = 64
#: In the place of an OSD that an erasure-coded pool lacks.
_NONE: Final = 0x7FFFFFFF


def find_osds(image: RbdImage, folder: Path) -> RbdLocality:
    """Ask Ceph where an image lies; two commands, however large it is.

    :param folder: for the key, as of :meth:`RbdImage.client_options`
    :raises PeerError: when Ceph does not know the image, or does not answer
    """
    options = image.client_options(folder)
    what = f"finding the OSDs of `{image.pool}/{image.name}`"
    words = ["rbd", *options, "info", "--pool", image.pool, "--image", image.name, "--format", "json"]
    (info,) = _documents(processes.run(words, what))
    pool, objects = str(info.get("data_pool", image.pool)), int(info["objects"])
    lines = [shlex.join(["osd", "map", pool, name]) for name in _sample(info, objects)]
    text = "\n".join([*lines, "osd tree"]) + "\n"
    *maps, tree = _documents(processes.run(["ceph", *options, "--format", "json"], what, given=text))
    if len(maps) != len(lines):
        raise DecodeError(f"{what}: {len(maps)} answers to {len(lines)} questions")
    return RbdLocality(pool, objects, len(maps), tuple(_shares(maps, _hosts(tree))))


def _sample(info: Mapping[str, Any], objects: int) -> list[str]:
    """Names of objects, evenly spread over the image."""
    digits = 16 if info["format"] > 1 else 12
    count = min(objects, SAMPLE)
    return [f"{info['block_name_prefix']}.{number * objects // count:0{digits}x}" for number in range(count)]


def _shares(maps: Sequence[Mapping[str, Any]], hosts: Mapping[int, str]) -> list[OsdShare]:
    copies = Counter(osd for one in maps for osd in set(one["acting"]))
    primaries = Counter(one["acting_primary"] for one in maps)
    return [
        OsdShare(osd, hosts.get(osd, ""), count / len(maps), primaries[osd] / len(maps))
        for osd, count in sorted(copies.items(), key=lambda pair: (-pair[1], pair[0]))
        if 0 <= osd < _NONE
    ]


def _hosts(tree: Mapping[str, Any]) -> dict[int, str]:
    return {osd: one["name"] for one in tree["nodes"] if one["type"] == "host" for osd in one["children"]}


def _documents(text: str) -> Iterator[Any]:
    """The JSON documents that follow one another in a text.

    :raises DecodeError: when something else is among them
    """
    decoder, place = json.JSONDecoder(), 0
    text = text.strip()
    while place < len(text):
        try:
            document, place = decoder.raw_decode(text, place)
        except ValueError as error:
            raise DecodeError(f"Ceph answered no JSON: {error}", text[place:].encode()) from error
        yield document
        while place < len(text) and text[place].isspace():
            place += 1
