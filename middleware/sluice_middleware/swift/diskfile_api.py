"""Imports of the disk files and their tools from Swift's object server.

Separate from :mod:`proxy_api`, so that a proxy never loads code that only storage nodes need.
"""

from __future__ import annotations

from swift.common import storage_policy as storage_policies
from swift.common import utils
from swift.common.exceptions import (
    DiskFileBadMetadataChecksum,
    DiskFileDeleted,
    DiskFileDeviceUnavailable,
    DiskFileError,
    DiskFileNoSpace,
    DiskFileNotExist,
    DiskFileQuarantined,
    DiskFileStateChanged,
    DiskFileXattrNotSupported,
    ReplicationException,
)
from swift.common.request_helpers import is_object_transient_sysmeta, is_sys_or_user_meta
from swift.common.storage_policy import POLICIES, REPL_POLICY, PolicyError
from swift.common.swob import (
    HTTPBadRequest,
    HTTPConflict,
    HTTPCreated,
    HTTPException,
    HTTPInsufficientStorage,
    HTTPRequestEntityTooLarge,
    HTTPServiceUnavailable,
    Request,
    Response,
)
from swift.common.utils import (
    Timestamp,
    close_if_possible,
    drop_buffer_cache,
    fdatasync,
    fsync_dir,
    get_partition_for_hash,
    makedirs_count,
    public,
)
from swift.obj.diskfile import (
    BaseDiskFile,
    BaseDiskFileManager,
    BaseDiskFileReader,
    BaseDiskFileWriter,
    DiskFile,
    DiskFileManager,
    DiskFileReader,
    DiskFileWriter,
    ECDiskFile,
    ECDiskFileManager,
    ECDiskFileReader,
    ECDiskFileWriter,
    extract_policy,
    get_data_dir,
    get_part_path,
    get_tmp_dir,
    read_metadata,
    write_metadata,
)
from swift.obj.server import ObjectController, get_obj_name_and_placement
