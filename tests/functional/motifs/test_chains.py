"""Objects that are made one from the other: in a circle, and in chains up to the limit and beyond it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tests.support.cluster.motifs import FIRST, concat, contract, expand, is_contracted, motif, put

from sluice_middleware.motifs.daemon_client import DaemonAway
from sluice_middleware.wsgi.response import RefusedRequest
from sluice_motifs.dependencies.availability import DEEPEST

CIRCLE = ("a", "b", "c")
TEMPLATES = {
    "concat": lambda path: concat(path),
    "duplicate_of": lambda path: motif("duplicate_of", source=f"AUTH_test/{path}"),
}


def probe(*values):
    """A case that is not tried in every run."""
    return pytest.param(*values, marks=pytest.mark.probe)


def write_circle(swift, container, template):
    """Three objects, each made of the next."""
    put(swift, container)
    for name in CIRCLE:
        put(swift, f"{container}/{name}", FIRST)
    for name, source in zip(CIRCLE, "bca", strict=True):
        made = TEMPLATES[template](f"{container}/{source}")
        attached = swift.request("POST", f"{container}/{name}", x_object_motif=made)
        assert attached.status == 202, attached


def are_whole(swift, container):
    return all(swift.request("GET", f"{container}/{name}").body == FIRST for name in CIRCLE)


@pytest.mark.parametrize(("template", "last"), [("concat", "a"), probe("concat", "c"), ("duplicate_of", "b")])
def test_the_last_of_a_circle_keeps_its_bytes(motifs, swift, template, last):
    container = f"ch-{template[:3]}-{last}"
    write_circle(swift, container, template)
    others = [name for name in CIRCLE if name != last]
    for name in others:
        contract(motifs, f"{container}/{name}")
    for verify in ("trust", "head"):
        with pytest.raises(RefusedRequest, match="would be needed to make itself"):
            contract(motifs, f"{container}/{last}", verify)
    assert not is_contracted(motifs, f"{container}/{last}")
    assert all(is_contracted(motifs, f"{container}/{name}") for name in others), "to refuse costs nothing"
    assert are_whole(swift, container)
    for name in others:
        expand(motifs, f"{container}/{name}")
    contract(motifs, f"{container}/{last}")  # now the others can make it
    assert are_whole(swift, container)


def test_a_proof_of_the_last_of_a_circle_makes_the_others_first(motifs, swift):
    write_circle(swift, "ch-proof", "concat")
    for name in "bc":
        contract(motifs, f"ch-proof/{name}")
    contract(motifs, "ch-proof/a", "expand")
    assert not is_contracted(motifs, "ch-proof/b"), "which `a` is made of"
    assert are_whole(swift, "ch-proof")


@pytest.mark.parametrize("template", ["concat", probe("duplicate_of")])
def test_contractions_at_once_leave_one_of_a_circle_expanded(motifs, swift, template):
    container = f"ch-race-{template[:3]}"
    write_circle(swift, container, template)

    def give_up(name):
        with suppress(RefusedRequest, DaemonAway):
            contract(motifs, f"{container}/{name}", "trust", expanded=False)

    with ThreadPoolExecutor(len(CIRCLE)) as pool:
        for _ in range(4):
            list(pool.map(give_up, CIRCLE))
            kept = [name for name in CIRCLE if not is_contracted(motifs, f"{container}/{name}")]
            assert kept, "all bytes are gone"
            assert are_whole(swift, container)
            for name in CIRCLE:
                expand(motifs, f"{container}/{name}")


def write_chain(swift, container, length):
    """Objects 0 to ``length``, each but the first without a motif; the motif of each."""
    put(swift, container)
    for number in range(length + 1):
        put(swift, f"{container}/{number}", FIRST)
    return [concat(f"{container}/{number - 1}") for number in range(length + 1)]


def attach(swift, path, made):
    answer = swift.request("POST", path, x_object_motif=made)
    assert answer.status == 202, answer


@pytest.mark.parametrize("order", ["from below", probe("from above")])
def test_a_chain_at_the_limit_is_contracted_and_read(motifs, swift, order):
    container = f"ch-{order[5:]}"
    chain = write_chain(swift, container, DEEPEST)
    numbers = range(1, DEEPEST + 1)
    for number in numbers:
        attach(swift, f"{container}/{number}", chain[number])
    for number in numbers if order == "from below" else reversed(numbers):
        contract(motifs, f"{container}/{number}")
    assert all(is_contracted(motifs, f"{container}/{number}") for number in numbers)
    found = swift.request("GET", f"{container}/{DEEPEST}")
    assert (found.status, found.body == FIRST) == (200, True), found.body[:300]


def test_a_link_beyond_the_limit_is_not_attached(motifs, swift):
    chain = write_chain(swift, "ch-long", DEEPEST + 1)
    for number in range(1, DEEPEST + 1):
        attach(swift, f"ch-long/{number}", chain[number])
    refused = swift.request("POST", f"ch-long/{DEEPEST + 1}", x_object_motif=chain[-1])
    assert refused.status == 400
    assert f"would be made through more than {DEEPEST} others" in refused.body.decode()


def test_a_chain_that_grew_beyond_the_limit_says_so_until_a_link_of_it_is_expanded(motifs, swift):
    """Links are attached from the end to the beginning, so none of them is too far from it when it is looked at."""
    length = DEEPEST + 1
    chain = write_chain(swift, "ch-grown", length)
    for number in range(length, 0, -1):
        attach(swift, f"ch-grown/{number}", chain[number])
    for number in range(length, 0, -1):
        contract(motifs, f"ch-grown/{number}")
    refused = swift.request("GET", f"ch-grown/{length}")
    assert refused.status == 503
    assert f"more than {DEEPEST} items would be made one from the other" in refused.body.decode()
    assert is_contracted(motifs, f"ch-grown/{length}")
    expand(motifs, f"ch-grown/{length // 2}")  # which is not too deep, so that the last one is not any more
    assert swift.request("GET", f"ch-grown/{length}").body == FIRST
