"""Imports from Swift for daemons: its replication daemons, and its WSGI server; servers never load this module."""

from __future__ import annotations

from swift.common.utils import parse_options
from swift.common.wsgi import run_wsgi
from swift.obj import reconstructor as reconstructor_program
from swift.obj import replicator as replicator_program
from swift.obj.reconstructor import ObjectReconstructor, RebuildingECDiskFileStream
from swift.obj.replicator import ObjectReplicator
from swift.obj.ssync_sender import Sender
