"""The protocol over real object servers: what clients are told is one sequence, and wrong voters are found."""

import pytest
from tests.support.middleware.object_server import StorageNode, swift_conf
from tests.support.middleware.voting_cluster import VotingCluster, without_threads
from tests.support.objects import wrong_protocols as wrong
from tests.support.objects.simulation import Violation

from sluice_middleware.object_server import votes
from sluice_middleware.object_server.diskfile import commit

STEPS = 1200


@pytest.fixture(scope="module", autouse=True)
def policies(tmp_path_factory):
    with swift_conf(tmp_path_factory.mktemp("etc")):
        yield


@pytest.fixture
def run(tmp_path, monkeypatch):
    without_threads(monkeypatch)

    def run(seed, moves=0.1, wear=0.02):
        cluster = VotingCluster(seed, StorageNode(tmp_path / str(seed)), moves=moves, wear=wear)
        cluster.run(STEPS)
        return cluster.counts

    return run


def test_what_clients_are_told_is_one_sequence(run):
    counts = [run(seed) for seed in range(6)]
    total = {name: sum(one[name] for one in counts) for name in counts[0]}
    assert all(total.values()), total


@pytest.mark.parametrize(("acceptor", "seed"), [(wrong.NoPromise, 1), (wrong.NoHighest, 26), (wrong.EqualBallots, 117)])
def test_a_wrong_voter_is_found(run, monkeypatch, acceptor, seed):
    monkeypatch.setattr(votes, "Acceptor", acceptor)
    monkeypatch.setattr(commit, "Acceptor", acceptor)
    with pytest.raises(Violation):
        run(seed)
