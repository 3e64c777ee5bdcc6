"""Manipulated stored bytes, and objects made to decompress hugely: no wrong byte reaches a client, no server's memory
grows.

The bytes on a disk are changed under a matching ETag and length, so that only Sluice's own checks can detect it.
"""

import base64
import contextlib
import hashlib
import json
import random
import struct
import zlib

import pytest
import zstandard
from tests.support.cluster.object_files import download, file_metadata, object_files, replace_content

from sluice_aio.base.setup import EC21, GOLD
from sluice_filters.compression.layout import pack_lengths, unpack_lengths
from sluice_middleware.object_server.diskfile.stored_metadata import ENTRY
from sluice_middleware.wsgi.sysmeta import CHAIN, ETAG, NODE, encode_chain

#: Shrinks to half, so that a pipeline of two filters has several segments.
BODY = random.Random(7).randbytes(400_000).hex().encode()
FRAME = 65536
SEGMENT = 65536 + 16
PIPELINES = {
    "compression": f"compression WITH frame_size={FRAME}",
    "encryption": "encryption",
    "both": f"compression WITH frame_size={FRAME}, SET encryption",
}
RANGES = ((0, 9), (FRAME - 5, FRAME + 5), (300_000, 500_000), (len(BODY) - 10, len(BODY) - 1))


def spans(records, size):
    """The ranges of a stored object's parts that have checksums of their own."""
    if records[-1]["f"] == "encryption":
        return [(begin, min(begin + SEGMENT, size)) for begin in range(0, size, SEGMENT)]
    lengths = unpack_lengths(base64.urlsafe_b64decode(records[-1]["r"]["index"]))
    ends = [sum(lengths[: number + 1]) for number in range(len(lengths))]
    return list(zip([0, *ends], ends, strict=False))


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def damages(content, records):
    """Name → a manipulated version of the same object."""
    parts = [content[begin:end] for begin, end in spans(records, len(content))]
    assert len(parts) >= 5, "too few parts to play with"
    swapped = [parts[2], parts[1], parts[0], *parts[3:]]
    return {
        "swapped": b"".join(swapped),
        "one left out": b"".join([*parts[:2], *parts[3:]]),
        "one twice": b"".join([*parts[:3], *parts[2:]]),
        "the last one gone": b"".join(parts[:-1]),
        "cut": content[: len(content) // 2],
        "something behind": content + parts[-1],
        "first bit": flipped(content, 0),
        "middle bit": flipped(content, len(content) // 2),
        "last bit": flipped(content, len(content) - 1),
    }


def restamped(known, content):
    """Metadata that match the bytes, as far as stock Swift can detect."""
    return {**known, "Content-Length": str(len(content)), "ETag": hashlib.md5(content).hexdigest()}


@pytest.fixture
def box(swift):
    for policy in (GOLD, EC21):
        assert swift.request("PUT", f"stored-{policy}", x_storage_policy=policy).status in (201, 202)
    return f"stored-{GOLD}"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_on_the_proxy_nobody_ever_gets_a_wrong_byte(cluster, swift, policies, box, pipeline):
    policies(f"FOR CONTAINER AUTH_test/{box} DO SET {PIPELINES[pipeline]} ON PROXY")
    path = f"{box}/{pipeline}"
    assert swift.request("PUT", path, BODY).status == 201
    files = object_files(cluster.device_folders, f"AUTH_test/{path}")
    content, known = files[0].read_bytes(), file_metadata(files[0])
    assert len(files) == 3
    assert [file.read_bytes() == content for file in files] == [True] * 3
    for name, damaged in damages(content, json.loads(known[CHAIN])).items():
        for file in files:
            replace_content(file, damaged, restamped(known, damaged))
        found = download(swift, path)
        assert found.status in (200, 503), name
        if found.status == 200:
            assert not found.whole, name
            assert BODY.startswith(found.body), name
            assert len(found.body) < len(BODY), name
        parts = [(begin, end, download(swift, path, range=f"bytes={begin}-{end}")) for begin, end in RANGES]
        for begin, end, part in parts:
            right = BODY[begin : end + 1]
            assert part.status in (206, 503), name
            assert part.status == 503 or right.startswith(part.body), name
            assert part.status == 503 or part.whole == (part.body == right), name
    for file in files:
        replace_content(file, content, known)
    assert swift.request("GET", path).body == BODY


def test_an_encrypted_segment_of_another_object_does_not_open(cluster, swift, policies, box):
    policies(f"FOR CONTAINER AUTH_test/{box} DO SET encryption ON PROXY")
    found = {}
    for name in ("one", "other"):
        assert swift.request("PUT", f"{box}/{name}", BODY).status == 201
        found[name] = object_files(cluster.device_folders, f"AUTH_test/{box}/{name}")
    foreign = found["other"][0].read_bytes()[:SEGMENT]
    for file in found["one"]:
        content = foreign + file.read_bytes()[SEGMENT:]
        replace_content(file, content, restamped(file_metadata(file), content))
    refused = download(swift, f"{box}/one")
    assert (refused.status, b"segment 0" in refused.body) == (503, True)
    part = download(swift, f"{box}/one", range=f"bytes={FRAME}-{FRAME + 99}")  # the unchanged part
    assert (part.status, part.body) == (206, BODY[FRAME : FRAME + 100])
    assert download(swift, f"{box}/other").body == BODY


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_on_storage_nodes_another_replica_answers_and_the_file_is_put_away(
    cluster, swift, policies, box, eventually, pipeline
):
    policies(f"FOR CONTAINER AUTH_test/{box} DO SET {PIPELINES[pipeline]} ON STORAGE_NODE")
    path = f"{box}/node-{pipeline}"
    names = damages(*sample(cluster, swift, path)).keys()
    for turn, name in enumerate(names):
        assert swift.request("PUT", path, BODY).status == 201
        victim = object_files(cluster.device_folders, f"AUTH_test/{path}")[turn % 3]
        known = file_metadata(victim)
        content = victim.read_bytes()
        stored = json.loads(known[ENTRY])
        damaged = damages(content, stored["chain"])[name]
        stored |= {"size": len(damaged), "crc": zlib.crc32(damaged)}
        replace_content(victim, damaged, {**known, ENTRY: json.dumps(stored)})
        device = next(one for one in cluster.device_folders if victim.is_relative_to(one))
        away = device / "quarantined" / "objects" / victim.parent.name

        def asked(away=away, name=name):
            found = download(swift, path)
            assert (found.status, found.whole, found.body == BODY) == (200, True, True), name
            return away.exists()

        eventually(asked, 60)
        part = download(swift, path, range="bytes=300000-500000")
        assert part.body == BODY[300_000:500_001]


def sample(cluster, swift, path):
    assert swift.request("PUT", path, BODY).status == 201
    file = object_files(cluster.device_folders, f"AUTH_test/{path}")[0]
    return file.read_bytes(), json.loads(file_metadata(file)[ENTRY])["chain"]


def test_a_damaged_fragment_is_put_away_and_the_object_read_from_the_others(cluster, swift, policies, box, eventually):
    del box
    policies(f"FOR CONTAINER AUTH_test/stored-{EC21} DO SET {PIPELINES['both']} ON STORAGE_NODE")
    path = f"stored-{EC21}/o"
    assert swift.request("PUT", path, BODY).status == 201
    victim = object_files(cluster.device_folders, f"AUTH_test/{path}")[0]
    damaged = flipped(victim.read_bytes(), 1000)
    replace_content(victim, damaged, file_metadata(victim))

    def asked():
        found = download(swift, path)
        assert found.status == 200
        assert BODY.startswith(found.body)
        assert found.whole == (found.body == BODY)
        return not victim.exists()

    eventually(asked, 60)
    assert download(swift, path).body == BODY


# -- decompression bombs --------------------------------------------------------------

#: Memory that a process may gain while it serves a bomb: two frames of the largest size, and what the interpreter
#: keeps.
ROOM = 160 << 20
MIB = 1 << 20


def frame(number, plain, crc, content, padded=True):
    """A stored frame with any claimed size."""
    payload = content.ljust(plain >> 8, b"\0") if padded else content
    return struct.pack("<IIII", number, plain, len(payload), crc) + payload


def zeros(size):
    return zstandard.ZstdCompressor(write_content_size=True).compress(bytes(size)), zlib.crc32(bytes(size))


def record(frames, size, length):
    index = base64.urlsafe_b64encode(pack_lengths(map(len, frames))).decode()
    stored = sum(map(len, frames))
    return {"v": 1, "engine": "zstd", "size": size, "stored": stored, "frame": length, "index": index}


def honest(count=512, length=MIB):
    """A frame as dense as the format allows: half a gigabyte of zeros in two megabytes."""
    packed, crc = zeros(length)
    frames = [frame(number, length, crc, packed) for number in range(count)]
    return b"".join(frames), [record(frames, count * length, length)]


def claims_more():
    """Four frames that claim to be an exabyte."""
    content, (made,) = honest(4)
    return content, [{**made, "size": 1 << 60}]


def denser_than_allowed():
    packed, crc = zeros(32 * MIB)
    frames = [frame(0, 32 * MIB, crc, packed, padded=False)]
    return b"".join(frames), [record(frames, 32 * MIB, 32 * MIB)]


def lying_header():
    """A frame of one byte by its header, a gigabyte by its record."""
    packed = zstandard.ZstdCompressor(write_content_size=True).compress(bytes(256 * MIB))
    frames = [frame(0, MIB, 0, packed)]
    return b"".join(frames), [record(frames, MIB, MIB)]


def bomb_in_a_bomb():
    """An object of zeros, compressed several times: eighty bytes are a gigabyte."""
    content, records = honest(1024)
    for _ in range(2):
        packed = zstandard.ZstdCompressor(write_content_size=True).compress(content)
        frames = [frame(0, len(content), zlib.crc32(content), packed)]
        records = [*records, record(frames, len(content), len(content))]
        content = b"".join(frames)
    return content, records


LIARS = ("claims_more", "denser_than_allowed", "lying_header")
BOMBS = {one.__name__: one for one in (honest, claims_more, denser_than_allowed, lying_header, bomb_in_a_bomb)}


@contextlib.contextmanager
def no_swelling(cluster, names):
    """No process of services ``names`` takes more memory at any moment than is allowed."""
    processes = [one.pid for name in names for one in [cluster.process(name), *cluster.workers(name)]]
    for pid in processes:
        with open(f"/proc/{pid}/clear_refs", "w") as file:
            file.write("5")  # the peak is reset
    before = {pid: memory(pid, "VmRSS") for pid in processes}
    yield
    gained = {pid: memory(pid, "VmHWM") - before[pid] for pid in processes}
    assert max(gained.values()) < ROOM, {pid: size >> 20 for pid, size in gained.items()}


def memory(pid, name):
    with open(f"/proc/{pid}/status") as file:
        (line,) = (line for line in file if line.startswith(f"{name}:"))
    return int(line.split()[1]) << 10


def planted(cluster, swift, path, bomb, inside):
    """Store the bomb as the object at ``path``, at the proxy's (or the disk file's) level; return its claimed size."""
    assert swift.request("PUT", path, b"harmless").status == 201
    content, records = BOMBS[bomb]()
    chain = encode_chain([{"f": "compression", "v": 1, "r": one} for one in records])
    size = records[0]["size"]
    for file in object_files(cluster.device_folders, f"AUTH_test/{path}"):
        known = file_metadata(file)
        if inside:
            entry = {"v": 1, "size": len(content), "crc": zlib.crc32(content), "chain": json.loads(chain)}
            replace_content(file, content, {**known, "Content-Length": str(size), ENTRY: json.dumps(entry)})
        else:
            replace_content(file, content, {**restamped(known, content), CHAIN: chain, ETAG: known["ETag"]})
    return size


@pytest.mark.parametrize("inside", [False, True], ids=["proxy", "storage"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_compression_bomb_ends_cleanly_in_bounded_memory(cluster, swift, box, bomb, inside):
    path = f"{box}/{bomb}-{inside}"
    size = planted(cluster, swift, path, bomb, inside)
    with no_swelling(cluster, ["object1", "object2", "object3"] if inside else ["proxy"]):
        first = download(swift, path, size=MIB)  # disconnects
        assert first.status in (404, 503) or not first.body.strip(b"\0")
        part = download(swift, path, range="bytes=100-199")
        assert part.status in (404, 503) or part.body in (b"", bytes(100))
        if bomb in LIARS:
            found = download(swift, path)
            assert found.status in (404, 503) or (not found.whole and len(found.body) < size)
    assert swift.request("PUT", path, b"harmless").status == 201
    assert swift.request("GET", path).body == b"harmless"
    assert NODE not in file_metadata(object_files(cluster.device_folders, f"AUTH_test/{path}")[0])
