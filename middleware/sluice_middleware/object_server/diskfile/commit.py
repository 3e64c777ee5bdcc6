"""The commit of a file under the lock of its object, where the object may have a home (``sluice_objects``).

Theory of operation.  All writes of an object server end in ``put`` of a writer: PUT, POST, DELETE, and the parts of a
batch.  There, after the body has arrived, the file becomes visible.  A state of a home is stored when the voter's
promises allow it, and the voter records it before others get the lock.  Any other write is refused where the device
has a promise or a state of the object, or else would be newer than all states that are acknowledged later.  A device
that has neither takes it as ever.

Copies between nodes pass: they bring what another device has stored, and rsync asks nobody.  Only replicated policies
have typed objects, so that writers of fragments take no lock.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from sluice_core.errors import SluiceError
from sluice_middleware.object_server.diskfile.disk_filters import Refused
from sluice_middleware.object_server.diskfile.request_context import StateWrite, current_request
from sluice_middleware.object_server.voter.device_files import DeviceFiles
from sluice_middleware.swift import green
from sluice_middleware.swift.diskfile_api import BaseDiskFileWriter
from sluice_objects.protocol.acceptor import Acceptor, Refusal


class BallotRefused(SluiceError):
    """Another home has a promise of a higher ballot, or a newer state is stored."""

    status = 409

    def __init__(self, refusal: Refusal) -> None:
        promised = f", which was promised to the home at `{refusal.home}`" if refusal.home else ""
        super().__init__(f"the ballot must exceed `{refusal.promised.internal}`{promised}")
        self.refusal = refusal


class CommitMixin(BaseDiskFileWriter):  # type: ignore[misc]
    """For the writers of replicated policies, before all other mixins."""

    def put(self, metadata: MutableMapping[str, str]) -> None:
        """As Swift's writer, under the lock of the object.

        :raises Refused: the object has a home, and the request is not of one; nothing was stored
        :raises BallotRefused: the request is of a home that was replaced; nothing was stored
        """
        context = current_request()
        if context.copied:
            super().put(metadata)
            return
        files = DeviceFiles(self._diskfile)
        with files.lock():
            if context.state is not None:
                self._put_state(metadata, files, context.state)
            elif files.has_state():
                raise Refused("the object has a home, and this write is not of a home")
            else:
                super().put(metadata)

    def _put_state(self, metadata: MutableMapping[str, str], files: DeviceFiles, state: StateWrite) -> None:
        acceptor = Acceptor(files)
        refusal = acceptor.refusal(state.stamp)
        if refusal is not None:
            raise BallotRefused(refusal)
        super().put(metadata)
        green.run_in_thread(acceptor.accepted, state.stamp)
        state.stored = True
