"""A seeded, log-like corpus: lines of a web server and of syslog, like an operator's log files.

The same size and seed give the same bytes on every machine.  Clients, paths and agents come from
skewed pools; times advance; sizes, durations, process and request ids are fresh on every line, so
that the corpus compresses like logs do and not like one block repeated.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from itertools import accumulate

_NOUNS = "archive report invoice thumb index video audio user order batch daily static media cache export import"
_WORDS = tuple(_NOUNS.split())
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36",
    "python-swiftclient-4.6.0",
    "curl/8.5.0",
    "Boto3/1.34 md/Botocore#1.34 ua/2.0 os/linux",
    "rclone/v1.66.0",
)
_EVENTS = (
    "sshd[{pid}]: Accepted publickey for {word} from {ip} port {port} ssh2",
    "kernel: [{stamp}.{port}] XFS (sdb{digit}): Ending clean mount",
    "object-replicator[{pid}]: {port}/{pid} (97.3%) partitions replicated in {port}.{digit}s",
    "systemd[1]: Started {word}-{digit}.service - session of {word}",
    "container-updater[{pid}]: sweep of /srv/node/d{digit} completed: {port} successes, {digit} failures",
    "dhclient[{pid}]: DHCPACK of {ip} from 10.{digit}.0.1",
)
_BATCH = 4096


def _pools(rng: random.Random) -> tuple[list[str], list[str], list[str]]:
    clients = [f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}" for _ in range(3000)]
    paths = []
    for _ in range(6000):
        folder = "/".join(rng.choice(_WORDS) for _ in range(rng.randrange(1, 4)))
        paths.append(
            f"{folder}/{rng.choice(_WORDS)}-{rng.getrandbits(24):06x}.{rng.choice(('json', 'jpg', 'log', 'css'))}"
        )
    requests = [
        f'"{rng.choice(("GET", "GET", "GET", "PUT", "HEAD"))} /v1/AUTH_{rng.choice(_WORDS)}/{path} HTTP/1.1" '
        f"{rng.choice((200, 200, 200, 206, 304, 404))}"
        for path in paths
    ]
    return clients, requests, list(_AGENTS)


def _skewed(pool: list[str]) -> list[float]:
    """Cumulative weights of Zipf's law: few entries are popular."""
    return list(accumulate(1.0 / rank for rank in range(1, len(pool) + 1)))


def _system_line(rng: random.Random, clock: str, stamp: int, ip: str) -> str:
    event = rng.choice(_EVENTS).format(
        pid=rng.randrange(400, 32768),
        word=rng.choice(_WORDS),
        ip=ip,
        port=rng.randrange(1024, 65536),
        stamp=stamp % 1000000,
        digit=rng.randrange(8),
    )
    return f"2026-03-02T{clock}+00:00 node{rng.randrange(8)} {event}\n"


def _lines(seed: int) -> Iterator[str]:
    """Batches of lines without end; about one line in eight is syslog's."""
    rng = random.Random(seed)
    clients, requests, agents = _pools(rng)
    client_weights, request_weights, agent_weights = map(_skewed, (clients, requests, agents))
    stamp = 0
    while True:
        hosts = rng.choices(clients, cum_weights=client_weights, k=_BATCH)
        asked = rng.choices(requests, cum_weights=request_weights, k=_BATCH)
        seen = rng.choices(agents, cum_weights=agent_weights, k=_BATCH)
        batch = []
        for host, request, agent in zip(hosts, asked, seen, strict=True):
            bits = rng.getrandbits(64)
            stamp += (bits & 15) == 0
            clock = f"{stamp // 3600 % 24:02d}:{stamp // 60 % 60:02d}:{stamp % 60:02d}"
            if bits & 0x70 == 0:
                batch.append(_system_line(rng, clock, stamp, host))
                continue
            size = bits >> 40 if bits & 0x80 else bits >> 50
            batch.append(
                f'{host} - - [02/Mar/2026:{clock} +0000] {request} {size} "-" "{agent}" '
                f"tx{bits >> 8 & 0xFFFFFFFFFF:010x} 0.{bits >> 20 & 1023:04d}\n"
            )
        yield "".join(batch)


def log_corpus(size: int, seed: int = 1) -> bytes:
    """``size`` bytes of log lines (the last one is cut)."""
    pieces = []
    have = 0
    lines = _lines(seed)
    while have < size:
        piece = next(lines).encode()
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)[:size]


def main() -> None:
    """Write a corpus to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("size", type=int, help="bytes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begin = time.perf_counter()
    data = log_corpus(options.size, options.seed)
    sys.stderr.write(f"{len(data)} bytes in {time.perf_counter() - begin:.1f} s\n")
    sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
