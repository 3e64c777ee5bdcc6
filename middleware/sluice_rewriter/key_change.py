"""Encrypts an object under the active key without any other change.

Encryption is the last filter of a chain, so only that filter is decoded and encoded again.  The bytes inside
(compressed bytes, for example) pass unchanged, whatever the policies now.  An object that storage nodes encrypted names
no key outside the disks; it is sent again unchanged, and each node encrypts it under its active key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sluice_core.errors import PeerError
from sluice_filters.api import Filter, Hint
from sluice_filters.chain import ChainEncoder
from sluice_middleware.swift.internal_api import FileLikeIter
from sluice_middleware.swift.proxy_api import header_to_environ_key
from sluice_middleware.wsgi import encoding, sysmeta
from sluice_middleware.wsgi.decoding import TransformedObject
from sluice_middleware.wsgi.encoding import EncodedInput
from sluice_middleware.wsgi.policy_lookup import Target
from sluice_middleware.wsgi.response import App, Env, UpstreamResponse
from sluice_middleware.wsgi.stored_object import StoredObject

Filters = Mapping[str, type[Filter]]


def outer_encryption(stored: StoredObject, filters: Filters) -> type[Filter] | None:
    """The filter that encrypted an object last on a proxy, if its present key is another one.

    :raises SluiceError: without an active key
    """
    if not stored.records:
        return None
    record = stored.records[-1]
    found = filters.get(record["f"])
    return found if found is not None and found.info.protective and not found({}).writes(record["r"]) else None


def has_old_key(stored: StoredObject, filters: Filters) -> bool:
    """Whether an object may be encrypted under another key than the active one."""
    steps = json.loads(stored.node_steps) if stored.node_steps else []
    on_nodes = any(one.get("f") in filters and filters[one["f"]].info.protective for one in steps)
    return on_nodes or outer_encryption(stored, filters) is not None


def describe_encrypted_upload(
    env: Env, source: Env, target: Target, stored: StoredObject, answer: UpstreamResponse, app: App, filters: Filters
) -> EncodedInput | None:
    """Turn ``env`` into the upload of the object in ``answer`` under the active key.

    :param source: the request that ``answer`` answers
    :returns: the encrypted body, None when the bytes are sent again unchanged
    :raises SluiceError: when the object cannot be decrypted
    """
    for name, value in stored.headers:
        if name.lower().startswith((sysmeta.PREFIX, sysmeta.OVERRIDE_PREFIX)):
            env[header_to_environ_key(name)] = value
    if stored.motif_record:
        env[header_to_environ_key(sysmeta.MOTIF)] = stored.motif_record
    encryption = outer_encryption(stored, filters)
    if encryption is None:
        env["CONTENT_LENGTH"] = sysmeta.find_header(stored.headers, "Content-Length") or "0"
        env["HTTP_ETAG"] = sysmeta.find_header(stored.headers, "Etag") or ""
        env["wsgi.input"] = FileLikeIter(answer.body)
        return None
    inner = TransformedObject(app, source, answer, sysmeta.encode_chain(stored.records[-1:]), filters, target[0])
    if inner.missing:
        raise PeerError(f"this node cannot undo {', '.join(inner.missing)}")
    env["wsgi.input"] = FileLikeIter(inner.read_all().started())
    env["CONTENT_LENGTH"] = str(inner.size)
    env.pop("HTTP_ETAG", None)
    hint = Hint(size=inner.size, account=target[0])
    body = encoding.prepare_upload(env, ChainEncoder([encryption({})], hint), inner.size, encryption.heavy)
    assert body is not None
    _keep_inner_records(env, body, stored)
    return body


def _keep_inner_records(env: Env, body: EncodedInput, stored: StoredObject) -> None:
    """Replace only the last record; ETag and listing values were sent as headers, since they stay."""
    env.pop(header_to_environ_key(sysmeta.CHAIN), None)

    def footers(given: encoding.Footers) -> None:
        given[sysmeta.CHAIN] = sysmeta.encode_chain([*stored.records[:-1], *body.records()])

    env[encoding.FOOTERS] = footers
