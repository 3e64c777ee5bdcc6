"""Creates a set-up's policies in a cluster, and checks that they have the set-up's intended effect."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any, Final

from sluice_aio.base.swift_http import SwiftHttp
from sluice_aio.cluster.cluster import Cluster
from sluice_aio.cluster.disks import data_files
from sluice_aio.errors import LaunchError
from sluice_client import Client

_BODY: Final = b"as it was sent, " * 512
_WAIT: Final = 20.0


def say_policies(cluster: Cluster, sentences: Collection[str], transforms: bool) -> None:
    """Create a policy for each sentence and wait until all nodes enforce it.

    :raises LaunchError: when a node does not, or (``transforms``) an upload is stored unchanged
    """
    with Client(cluster.api_url, cluster.token) as api:
        for sentence in sentences:
            made = api.create_policy(sentence, wait=_WAIT)
            until = time.monotonic() + _WAIT
            while not _is_enforced(made):  # workers may just be loading the code of a filter
                if time.monotonic() > until:
                    raise LaunchError(f"`{sentence}` is not enforced: {made['enforced']}")
                time.sleep(0.2)
                made = api.policy(made["id"])
    if transforms and not _transformed(cluster):
        raise LaunchError(f"an upload lies on the disks as it was sent, in spite of `{'; '.join(sentences)}`")


def _is_enforced(policy: Mapping[str, Any]) -> bool:
    enforced = policy["enforced"]
    return bool(enforced["total"]) and enforced["nodes"] == enforced["total"]


def upload_filters(cluster: Cluster, uploads: Collection[tuple[Mapping[str, Any], bytes]]) -> None:
    """Register filters and upload their code."""
    if not uploads:
        return
    with Client(cluster.api_url, cluster.token) as api:
        for description, code in uploads:
            api.register_filter(description)
            api.upload_filter(description["keyword"], code, wait=_WAIT)


def _transformed(cluster: Cluster) -> bool:
    """Whether no replica of an upload is stored unchanged, and a GET returns the uploaded bytes."""
    swift = SwiftHttp(cluster.proxy_url).login("test:tester", "testing")
    swift.request("PUT", "before-the-suite")
    swift.request("PUT", "before-the-suite/object", _BODY)
    stored = [path.read_bytes() for path in data_files(cluster.device_folders)]
    back = swift.request("GET", "before-the-suite/object")
    if back.status != 200 or back.body != _BODY:
        raise LaunchError(f"an upload does not come back: status {back.status}, {len(back.body)} bytes")
    swift.request("DELETE", "before-the-suite/object")
    swift.request("DELETE", "before-the-suite")
    swift.close()
    # part of the body: a fragment of an erasure-coded object has a header, then plain bytes
    return bool(stored) and not any(_BODY[:1024] in content for content in stored)
