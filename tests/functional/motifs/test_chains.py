"""Objects that are made from each other: in a cycle, and in chains up to the limit and beyond it."""

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
    """A case that is not run each time."""
    return pytest.param(*values, marks=pytest.mark.probe)


def attach(swift, path, made):
    answer = swift.request("POST", path, x_object_motif=made)
    assert answer.status == 202, answer


def write_circle(swift, container, template):
    """Three objects, and for each the motif that makes it from the next one."""
    put(swift, container)
    for name in CIRCLE:
        put(swift, f"{container}/{name}", FIRST)
    return {
        f"{container}/{name}": TEMPLATES[template](f"{container}/{source}")
        for name, source in zip(CIRCLE, "bca", strict=True)
    }


def are_whole(swift, circle):
    return all(swift.request("GET", path).body == FIRST for path in circle)


def test_a_motif_that_closes_a_circle_of_derived_objects_is_refused(motifs, swift):
    (first, one), (second, other), (last, closing) = write_circle(swift, "ch-circle", "concat").items()
    attach(swift, first, one)
    attach(swift, second, other)
    refused = swift.request("POST", last, x_object_motif=closing)
    assert refused.status == 400
    assert f"`AUTH_test/{last}` would be made from itself, through `AUTH_test/{second}`" in refused.body.decode()
    for path in (second, first):
        contract(motifs, path)
    assert are_whole(swift, (first, second, last))


def test_all_of_a_circle_of_duplicates_give_up_their_bytes(motifs, swift):
    circle = write_circle(swift, "ch-dup", "duplicate_of")
    for path, made in circle.items():
        attach(swift, path, made)
    for path in circle:
        contract(motifs, path, expanded=False)  # the others share its copy, and may be contracted already
    assert all(is_contracted(motifs, path) for path in circle)
    assert are_whole(swift, circle)


@pytest.mark.probe
def test_contractions_at_once_of_a_circle_of_duplicates(motifs, swift):
    circle = write_circle(swift, "ch-race", "duplicate_of")
    for path, made in circle.items():
        attach(swift, path, made)

    def give_up(path):
        with suppress(RefusedRequest, DaemonAway):
            contract(motifs, path, expanded=False)

    with ThreadPoolExecutor(len(CIRCLE)) as pool:
        for _ in range(4):
            list(pool.map(give_up, circle))
            assert are_whole(swift, circle)
            for path in circle:
                expand(motifs, path)


def write_chain(swift, container, length):
    """Objects 0 to ``length``, each but the first without a motif; the motif of each."""
    put(swift, container)
    for number in range(length + 1):
        put(swift, f"{container}/{number}", FIRST)
    return [concat(f"{container}/{number - 1}") for number in range(length + 1)]


@pytest.mark.parametrize("order", ["from below", probe("from above")])
def test_a_chain_at_the_limit_is_contracted_and_read(motifs, swift, order):
    container = f"ch-{order[5:]}"
    chain = write_chain(swift, container, DEEPEST)
    numbers = range(1, DEEPEST + 1)
    for number in numbers:
        attach(swift, f"{container}/{number}", chain[number])
    for number in numbers:  # each is verified by reading the one before
        contract(motifs, f"{container}/{number}")
        expand(motifs, f"{container}/{number}")
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
    """Links are attached from the end to the start, so none of them is too deep when it is checked."""
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
    expand(motifs, f"ch-grown/{length // 2}")  # which is not too deep, so that the last one no longer is
    assert swift.request("GET", f"ch-grown/{length}").body == FIRST
