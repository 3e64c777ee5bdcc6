"""Preconditions of tests of objects with motifs by the API."""

import pytest
from tests.support.cluster.motifs import FIRST, concat, contract, put


@pytest.fixture(scope="module")
def leases(motifs, swift):
    """Wait until an object was contracted: a Redis that was just started grants no leases for some seconds."""
    put(swift, "leases")
    put(swift, "leases/source", FIRST)
    put(swift, "leases/o", FIRST, x_object_motif=concat("leases/source"))
    contract(motifs, "leases/o")
