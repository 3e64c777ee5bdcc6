from benchmarks.harness.scale import Scale
from benchmarks.motifs.graph import LIMITS, measure, random_edges


def test_a_random_graph_is_connected_and_has_as_many_edges_as_asked():
    edges = random_edges(300, 700)
    assert len(set(edges)) == 700
    assert all(one < other for one, other in edges)
    assert {other for _, other in edges} == set(range(1, 300))  # each is linked to an earlier one


def test_a_quick_run_has_a_rate_for_each_limit(tmp_path):
    figures = measure(Scale(tmp_path, quick=True))
    assert [figure.name for figure in figures] == ["motif graph", "motif graph"]
    phases = figures[0].details["phases"]
    assert [phase["limit"] for phase in phases] == [limit for _, limit in LIMITS]
    assert phases[0]["hits"] == 0
    assert phases[1]["hits"] > phases[1]["expansions"]
