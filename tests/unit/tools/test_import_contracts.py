import grimp
import pytest
from tools.import_contracts import ImportsOfOurs


@pytest.fixture
def graph():
    graph = grimp.ImportGraph()
    for importer, imported in [("sluice_a", "sys"), ("sluice_b.user", "sluice_a.records"), ("sluice_b", "redis")]:
        graph.add_module(importer)
        graph.add_module(imported)
        graph.add_import(importer=importer, imported=imported)
    return graph


def contract(*rows):
    return ImportsOfOurs(
        name="packages",
        session_options={"root_packages": ["sluice_a", "sluice_b"]},
        contract_options={"rows": list(rows)},
    )


def test_what_a_row_names_may_be_imported(graph):
    assert contract("sluice_a: -", "sluice_b: a").check(graph, verbose=False).kept


def test_an_import_that_no_row_names_is_listed(graph):
    check = contract("sluice_a: b", "sluice_b: -").check(graph, verbose=False)
    assert not check.kept
    assert check.metadata["forbidden"] == ["sluice_b.user imports sluice_a.records"]


def test_a_package_without_a_row_is_refused(graph):
    with pytest.raises(ValueError, match="sluice_b"):
        contract("sluice_a: -").check(graph, verbose=False)
