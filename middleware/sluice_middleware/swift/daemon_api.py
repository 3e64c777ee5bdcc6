"""Imports from Swift's replication daemons; servers never load this module."""

from __future__ import annotations

from swift.obj import reconstructor as reconstructor_program
from swift.obj import replicator as replicator_program
from swift.obj.reconstructor import ObjectReconstructor, RebuildingECDiskFileStream
from swift.obj.replicator import ObjectReplicator
from swift.obj.ssync_sender import Sender
