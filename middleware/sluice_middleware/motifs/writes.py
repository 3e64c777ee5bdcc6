"""PUT, POST, DELETE and COPY of objects with motifs.

* ``X-Object-Motif`` on a PUT or POST attaches motifs; the daemon checks them, and returns the record to store.
* A POST replaces all metadata posted before, so the record of motifs among them is sent again.
* A copy of an object has its motifs, attached by the identity that copies; of a contracted one no byte is read.
* Objects that an earlier version contracted may need present versions of the objects in a marked container.  Before a
  PUT or DELETE of one, the daemon secures its bytes.  The mark is in the container's metadata, which Swift's proxy
  reads (or has cached) for each write anyway; it is removed once all those objects were contracted again.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from sluice_core.describe import MOTIF
from sluice_core.messages.elasticity import ATTACH as MOTIF_KEYWORD
from sluice_core.resolve import Candidates
from sluice_middleware.motifs.attachments import HEADER_ENV, parse_attachments
from sluice_middleware.motifs.daemon_client import DaemonAway, DaemonClient, ItemReports, transaction_of
from sluice_middleware.motifs.daemon_protocol import ATTACH, CHANGE, COPY, WorkerCall, WorkerReply
from sluice_middleware.motifs.object_views import ObjectViews, item_name, target_of
from sluice_middleware.motifs.reads import COPY_SOURCES
from sluice_middleware.motifs.rights import identity_of
from sluice_middleware.swift.proxy_api import (
    get_container_info,
    get_container_update_override_key,
    header_to_environ_key,
)
from sluice_middleware.wsgi import sysmeta
from sluice_middleware.wsgi.backend_headers import SOURCE
from sluice_middleware.wsgi.policy_lookup import Target, content_length, is_interpreted, is_version, upload_facts
from sluice_middleware.wsgi.response import App, Env, RefusedRequest, UpstreamResponse
from sluice_motif_control.actions import attachments
from sluice_motifs.api import Template

log = logging.getLogger(__name__)

_OVERRIDE_ETAG: Final = header_to_environ_key(get_container_update_override_key("etag"))
_OVERRIDE_SIZE: Final = header_to_environ_key(get_container_update_override_key("size"))
_METADATA: Final = "HTTP_X_OBJECT_META_"
#: Set on the link from an object of a versioned container to its newest version.
_VERSION_LINK: Final = "HTTP_X_OBJECT_SYSMETA_VERSIONS_SYMLINK"
#: Size header of a manifest; Swift's ``object_versioning`` reads it from the version that it stored.
_VERSION_SIZE: Final = "HTTP_X_OBJECT_SYSMETA_SLO_SIZE"
_EXPIRY: Final = ("HTTP_X_DELETE_AT", "HTTP_X_DELETE_AFTER")


class MotifWrites:
    """:param accepted: whether Swift would accept a client's request"""

    def __init__(
        self,
        app: App,
        daemon: DaemonClient,
        templates: Mapping[str, type[Template]],
        accepted: Callable[[App, Env], bool],
        reports: ItemReports,
    ) -> None:
        self._app = app
        self._daemon = daemon
        self._reports = reports
        self._templates = templates
        self._accepted = accepted

    def is_idle(self, env: Env, target: Target, copied: str | None) -> bool:
        """Whether a PUT, POST or DELETE needs none of :meth:`guarded`, :meth:`copy`, :meth:`attach`, :meth:`post`:
        there is no daemon, the client requests no motif, and no contracted object needs the present version.
        """
        if self._daemon.path or copied is not None or HEADER_ENV in env:
            return False
        return not self._is_marked(env, target)

    @contextmanager
    def guarded(self, env: Env, target: Target) -> Iterator[None]:
        """Context in which the request may change its object.

        :raises SluiceError: when its bytes cannot be kept for objects that an earlier version contracted
        """
        try:
            if self._is_marked(env, target) and self._accepted(self._app, env):
                self._daemon.call(WorkerCall(CHANGE, item_name(target), request=transaction_of(env))).close()
            yield
        finally:
            if env["REQUEST_METHOD"] != "POST":
                self._reports.note_change(item_name(target))

    def _is_marked(self, env: Env, target: Target) -> bool:
        method = env["REQUEST_METHOD"]
        if method not in ("PUT", "DELETE") and (method != "POST" or env.keys().isdisjoint(_EXPIRY)):
            return False
        # middlewares further left have mostly requested the container's metadata
        known = env.get("swift.infocache", {}).get(f"container/{target[0]}/{target[1]}")
        info = known or get_container_info(env, self._app, swift_source=SOURCE)
        return sysmeta.SOURCES_MARK in info.get("sysmeta", {})

    def attach(self, env: Env, target: Target, candidates: Candidates) -> None:
        """Attach the motifs of a client's PUT header, or, without a header, those of policies.

        :param candidates: the policies that may concern the object
        :raises SluiceError: when they cannot be attached as the client requests
        """
        value = env.pop(HEADER_ENV, None)
        if value is None:
            if MOTIF_KEYWORD in candidates.keywords and self._daemon.path and not is_interpreted(env):
                self._attach_by_policy(env, target, candidates)
            return
        if _VERSION_LINK in env:
            return  # the version was written before, with its motifs
        if is_interpreted(env):
            raise RefusedRequest("manifests and links take no motifs", 400)
        reply = self._attached(env, target, value, fresh=True)
        if reply is not None:
            env[sysmeta.MOTIF_ENV] = reply.record
            env[sysmeta.WITH_MOTIFS] = True

    def _attach_by_policy(self, env: Env, target: Target, candidates: Candidates) -> None:
        """Attach the motifs of policies; an object is stored without a motif that cannot be attached to it."""
        pipeline = candidates.resolve(upload_facts(env, target[2])).get(MOTIF, ())
        metadata = {
            name.removeprefix(_METADATA).replace("_", "-").lower(): str(value)
            for name, value in env.items()
            if name.startswith(_METADATA)
        }
        wanted = attachments(pipeline, metadata)
        if not wanted or not self._accepted(self._app, env):
            return
        identity = identity_of(env, target[0])
        call = WorkerCall(
            ATTACH, item_name(target), motifs=tuple(wanted), identity=identity, fresh=True, request=transaction_of(env)
        )
        try:
            with self._daemon.call(call) as granted:
                env[sysmeta.MOTIF_ENV] = granted.reply.record
                env[sysmeta.WITH_MOTIFS] = True
        except (RefusedRequest, DaemonAway) as error:
            log.warning("`%s` is stored without the motif of a policy: %s", item_name(target), error)

    def post(self, env: Env, target: Target) -> None:
        """Attach the motifs of a client's POST header, and keep the attached ones otherwise.

        :raises SluiceError: when that is impossible
        """
        value = env.pop(HEADER_ENV, None)
        if value is not None:
            reply = self._attached(env, target, value, fresh=False)
            if reply is not None:
                env[sysmeta.POSTED_MOTIF_ENV] = reply.record
            return
        if not self._daemon.path:
            return  # this proxy attaches no motifs, so the HEAD is needless
        stored = ObjectViews(self._app, env.get("swift.cache")).stored(item_name(target))
        if stored is not None and stored.motif_record:
            env[sysmeta.POSTED_MOTIF_ENV] = stored.posted_motif(stored.motif_record)

    def _attached(self, env: Env, target: Target, value: str, fresh: bool) -> WorkerReply | None:
        motifs = parse_attachments(value, self._templates)
        if not self._accepted(self._app, env):
            return None  # Swift refuses it
        call = WorkerCall(
            ATTACH,
            item_name(target),
            motifs=motifs,
            identity=identity_of(env, target[0]),
            fresh=fresh,
            request=transaction_of(env),
        )
        with self._daemon.call(call) as granted:
            return granted.reply

    def copy(self, env: Env, target: Target, text: str | None) -> UpstreamResponse | None:
        """Copy the motifs of an object; return None when Swift has to store the bytes, with the motifs if they can be
        copied.

        :param text: the value of ``sysmeta.COPIED`` in the request
        :raises SluiceError: when Swift is unreachable
        """
        if text is None or env.get("swift.source") not in COPY_SOURCES or HEADER_ENV in env:
            return None
        copied = json.loads(text)
        source = target_of(copied["n"])
        if source is None or source[0] != target[0] or is_interpreted(env) or not self._accepted(self._app, env):
            return None
        call = WorkerCall(
            COPY,
            copied["n"],
            to=item_name(target),
            identity=identity_of(env, target[0]),
            item_version=copied["v"],
            request=transaction_of(env),
        )
        try:
            granted = self._daemon.call(call)
        except (RefusedRequest, DaemonAway) as error:
            log.info("`%s` is copied without its motifs: %s", copied["n"], error)
            return None
        with granted:
            reply, size = granted.reply, content_length(env)
            if size != reply.size and not (size is None and is_version(target)):
                return None
            env[sysmeta.MOTIF_ENV] = reply.record
            env[sysmeta.WITH_MOTIFS] = True
            if not reply.contracted:
                return None
            answer = self._put_contracted(env, reply)
            if size is None:
                # Swift counts the bytes of a version while they are read, unless this header gives their number
                env[_VERSION_SIZE] = str(reply.size)
            return answer

    def _put_contracted(self, env: Env, reply: WorkerReply) -> UpstreamResponse:
        env["wsgi.input"] = io.BytesIO()
        env["CONTENT_LENGTH"] = "0"
        for name in ("HTTP_ETAG", "HTTP_TRANSFER_ENCODING"):
            env.pop(name, None)
        env[sysmeta.CONTRACTED_ENV] = sysmeta.encode_contracted(reply.size)
        env[sysmeta.ETAG_ENV] = env[_OVERRIDE_ETAG] = reply.etag
        env[_OVERRIDE_SIZE] = str(reply.size)
        answer = UpstreamResponse(self._app, env)
        if answer.code == 201:
            answer.headers = [(name, reply.etag if name.lower() == "etag" else value) for name, value in answer.headers]
        return answer
