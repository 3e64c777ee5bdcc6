"""The only client of Cinder: python-cinderclient over a session of keystoneauth.

Cinder answers most changes before they are done: a method returns the object as requested, and its status shows the
progress.  No request is repeated here.

A fault of the network, of Keystone or of Cinder itself is a :class:`PeerError`, after which the change may have
happened; a refusal is a :class:`CallerError` with Cinder's own reason, and its status.  Messages contain no token and
no connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from cinderclient import api_versions, exceptions
from cinderclient.v3 import client
from keystoneauth1 import exceptions as ksa
from keystoneauth1.session import Session

from sluice_core.errors import CallerError, Conflict, Forbidden, NotFound, PeerError
from sluice_volumes.cinder.records import (
    CinderAttachment,
    CinderSnapshot,
    CinderType,
    CinderVolume,
    attachment_of,
    pool_of,
    snapshot_of,
    type_of,
    volume_of,
)
from sluice_volumes.messages import Pool


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Translate the errors of both libraries to Sluice's.

    :param what: the attempt, for messages: ``creating the volume``
    :raises CallerError: when Cinder refuses
    :raises PeerError: when Cinder or Keystone is unreachable, or fails
    """
    try:
        yield
    except exceptions.NotFound as error:
        raise NotFound(f"{what}: {error.message}") from error
    except (exceptions.Forbidden, exceptions.Unauthorized) as error:
        raise Forbidden(f"{what}: cinder does not let you: {error.message}") from error
    except exceptions.ClientException as error:
        if error.code in (409, 413):  # 413: a quota
            raise Conflict(f"{what}: {error.message}") from error
        if 400 <= error.code < 500:
            raise CallerError(f"{what}: {error.message}") from error
        raise PeerError(f"{what}: cinder fails with {error.code}: {error.message}") from error
    except (ksa.Unauthorized, ksa.Forbidden) as error:
        raise PeerError(f"{what}: keystone does not let our service user in") from error
    except ksa.ClientException as error:
        raise PeerError(f"{what}: cinder or keystone cannot be asked: {type(error).__name__}") from error


#: Extending an attached volume needs 3.42, completing an attachment 3.44.
_MICROVERSION: Final = api_versions.APIVersion("3.60")
#: Its type in Keystone's catalogue.
SERVICE: Final = "volumev3"


class Cinder:
    """Cinder with the rights of one token; threads may share it.

    :param session: with a plugin that has the token
    :param options: further arguments of the client
    """

    def __init__(self, session: Session, **options: Any) -> None:
        self._session = session
        self._client = client.Client(api_version=_MICROVERSION, session=session, service_type=SERVICE, **options)

    def pools(self) -> list[Pool]:
        """Return the last report of each back end; ``seen`` is 0.  It requires an administrator."""
        with self._asking("reading the pools"):
            return [pool_of(one.to_dict()) for one in self._client.pools.list(detailed=True)]

    def types(self) -> list[CinderType]:
        """Return the volume types that the token may see, with the extra specs that it may see."""
        with self._asking("reading the volume types"):
            return [type_of(one.to_dict()) for one in self._client.volume_types.list()]

    def create_type(self, name: str, specs: Mapping[str, str], text: str = "", public: bool = True) -> CinderType:
        """Create a volume type with extra specs.

        :param text: its description
        :param public: whether users other than administrators see it
        :raises Conflict: when one with that name exists
        """
        shown = {"os-volume-type-access:is_public": public}
        wanted = {"name": name, "description": text, "extra_specs": dict(specs), **shown}
        with self._asking(f"creating the volume type `{name}`"):
            # the client's method would set the specs afterwards, and might end in between
            _, made = self._client.client.post("/types", body={"volume_type": wanted})
            return type_of(made["volume_type"])

    def change_specs(self, type_id: str, specs: Mapping[str, str], gone: tuple[str, ...] = ()) -> None:
        """Set extra specs of a type, and remove others.

        :raises NotFound: when the type does not exist
        """
        with self._asking(f"changing the volume type `{type_id}`"):
            volume_type = self._client.volume_types.get(type_id)
            volume_type.set_keys(dict(specs))
            if gone:
                volume_type.unset_keys(list(gone))

    def delete_type(self, type_id: str) -> None:
        """
        :raises NotFound: when the type does not exist
        :raises CallerError: when volumes use it
        """
        with self._asking(f"deleting the volume type `{type_id}`"):
            self._client.volume_types.delete(type_id)

    def create_volume(self, size: int, name: str, type_name: str, metadata: Mapping[str, str]) -> CinderVolume:
        """Create a volume of ``size`` GiB in the project of the token; an empty ``type_name`` is Cinder's default.

        :raises Conflict: when a quota is exceeded
        """
        with self._asking("creating the volume"):
            made = self._client.volumes.create(size, name=name, volume_type=type_name or None, metadata=dict(metadata))
            return volume_of(made.to_dict())

    def volume(self, volume_id: str) -> CinderVolume:
        """
        :raises NotFound: when the volume does not exist, or the token may not see it
        """
        with self._asking(f"volume `{volume_id}`"):
            return volume_of(self._client.volumes.get(volume_id).to_dict())

    def volumes(self, everybody: bool = False, **filters: Any) -> list[CinderVolume]:
        """Return the volumes of the token's project, newest first.

        :param everybody: return those of all projects, which requires an administrator
        :param filters: of Cinder: ``name``, ``project_id``, ``metadata`` …
        """
        wanted = {**filters, **({"all_tenants": 1} if everybody else {})}
        if "project_id" in wanted:  # Cinder reads it as Python, if it is that: digits would be a number
            wanted["project_id"] = repr(wanted["project_id"])
        with self._asking("reading the volumes"):
            found = self._client.volumes.list(search_opts=wanted, limit=None)
            return [volume_of(one.to_dict()) for one in found]

    def extend(self, volume_id: str, size: int) -> None:
        """Extend a volume to ``size`` GiB, attached or not."""
        with self._asking(f"extending volume `{volume_id}`"):
            self._client.volumes.extend(volume_id, size)

    def retype(self, volume_id: str, type_name: str) -> None:
        """Change the type of a volume in its place; it is never moved."""
        with self._asking(f"retyping volume `{volume_id}`"):
            self._client.volumes.retype(volume_id, type_name, "never")

    def delete_volume(self, volume_id: str) -> None:
        """
        :raises CallerError: when it is attached, or has snapshots
        """
        with self._asking(f"deleting volume `{volume_id}`"):
            self._client.volumes.delete(volume_id)

    def create_snapshot(self, volume_id: str, name: str, metadata: Mapping[str, str]) -> CinderSnapshot:
        """Create a snapshot of a volume, attached or not."""
        with self._asking(f"a snapshot of volume `{volume_id}`"):
            made = self._client.volume_snapshots.create(volume_id, force=True, name=name, metadata=dict(metadata))
            return snapshot_of(made.to_dict())

    def snapshot(self, snapshot_id: str) -> CinderSnapshot:
        """
        :raises NotFound: when the snapshot does not exist, or the token may not see it
        """
        with self._asking(f"snapshot `{snapshot_id}`"):
            return snapshot_of(self._client.volume_snapshots.get(snapshot_id).to_dict())

    def snapshots(self, volume_id: str, everybody: bool = False) -> list[CinderSnapshot]:
        """Return the snapshots of a volume, newest first."""
        wanted = {"volume_id": volume_id, **({"all_tenants": 1} if everybody else {})}
        with self._asking(f"reading the snapshots of volume `{volume_id}`"):
            found = self._client.volume_snapshots.list(search_opts=wanted)
            return [snapshot_of(one.to_dict()) for one in found]

    def delete_snapshot(self, snapshot_id: str) -> None:
        """
        :raises NotFound: when the snapshot does not exist
        """
        with self._asking(f"deleting snapshot `{snapshot_id}`"):
            self._client.volume_snapshots.delete(snapshot_id)

    def attachments(self, volume_id: str) -> list[CinderAttachment]:
        """Return the attachments of a volume, without connections."""
        with self._asking(f"reading the attachments of volume `{volume_id}`"):
            found = self._client.attachments.list(search_opts={"volume_id": volume_id, "all_tenants": 1})
            return [attachment_of(one.to_dict()) for one in found]

    def attachment(self, attachment_id: str) -> CinderAttachment:
        """Return an attachment with its connection.

        :raises NotFound: when it does not exist
        """
        with self._asking(f"attachment `{attachment_id}`"):
            return attachment_of(self._client.attachments.show(attachment_id).to_dict())

    def attach(self, volume_id: str, connector: Mapping[str, Any]) -> CinderAttachment:
        """Create an attachment, and return it with its connection; it is completed later.

        No instance is named, since Cinder would look it up in Nova when the attachment is deleted.

        :param connector: the konnector's description of its machine
        :raises CallerError: when the volume is attached already
        """
        with self._asking(f"attaching volume `{volume_id}`"):
            made = self._client.attachments.create(volume_id, dict(connector))
            return attachment_of(made)

    def complete_attachment(self, attachment_id: str) -> None:
        """Record that the consumer has the volume, which is in use from now on."""
        with self._asking(f"completing attachment `{attachment_id}`"):
            self._client.attachments.complete(attachment_id)

    def delete_attachment(self, attachment_id: str) -> None:
        """Delete an attachment; the export has ended when this returns.

        :raises NotFound: when it does not exist
        """
        with self._asking(f"deleting attachment `{attachment_id}`"):
            self._client.attachments.delete(attachment_id)

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """As :func:`translated_errors`; a token whose catalogue is older than Cinder's entry in it is dropped."""
        with translated_errors(what):
            try:
                yield
            except ksa.EndpointNotFound:
                self._session.invalidate()
                raise
