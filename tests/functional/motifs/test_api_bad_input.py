"""Invalid calls of ``/motifs`` and ``/spaces``, and odd names that are valid, while a daemon runs."""

import pytest
from tests.support.cluster.motifs import FIRST, is_contracted, put

from sluice_client import ApiError

pytestmark = pytest.mark.usefixtures("motifs")

SOURCE = "AUTH_test/bi-source/o"
#: Bytes that Swift takes at most, for a container's and for an object's name.
LONGEST_CONTAINER, LONGEST_OBJECT = 256, 1024


@pytest.fixture(scope="module", autouse=True)
def available(leases, swift, api, eventually):
    eventually(api.motif_templates)
    put(swift, "bi-source")
    put(swift, "bi-source/o", FIRST)
    put(swift, "bi")
    put(swift, "bi/o", FIRST)


def refused(call, *arguments, **named):
    """Status and reason of a call that must be refused."""
    with pytest.raises(ApiError) as raised:
        call(*arguments, **named)
    return raised.value.status, str(raised.value)


@pytest.mark.parametrize(
    ("container", "name"),
    [
        ("bi-ünï", "ça/là, 100 % \U0001f600"),
        ("bi-slashes", "a//b/../c/"),
        ("bi-" + "c" * (LONGEST_CONTAINER - 3), "ü" * (LONGEST_OBJECT // 2)),
    ],
    ids=["unicode", "slashes", "longest"],
)
def test_odd_names_are_names_like_others(motifs, swift, api, container, name):
    put(swift, container)
    put(swift, f"{container}/{name}", FIRST)
    shown = api.attach_motif("AUTH_test", container, name, "duplicate_of", {"source": SOURCE})
    assert (shown["item"], shown["motifs"][0]["template"]) == (f"AUTH_test/{container}/{name}", "duplicate_of")
    assert api.act_on_motif("AUTH_test", container, name, "contract")["contracted"]
    assert is_contracted(motifs, f"{container}/{name}")
    (row,) = api.motifs("AUTH_test", container)
    assert (row["item"], row["contracted"]) == (shown["item"], True)
    assert swift.request("GET", f"{container}/{name}").body == FIRST
    assert api.detach_motif("AUTH_test", container, name)["motifs"] == []


@pytest.mark.parametrize(
    ("container", "name"),
    [("c" * (LONGEST_CONTAINER + 1), "o"), ("bi", "o" * (LONGEST_OBJECT + 1)), ("bi", "ü" * LONGEST_OBJECT)],
    ids=["container", "object", "object in UTF-8"],
)
def test_a_name_that_is_too_long_is_an_object_that_is_not_there(api, container, name):
    for call in (
        lambda: api.motif("AUTH_test", container, name),
        lambda: api.motif("AUTH_test", container, name, why=True),
        lambda: api.attach_motif("AUTH_test", container, name, "duplicate_of", {"source": SOURCE}),
        lambda: api.act_on_motif("AUTH_test", container, name, "contract"),
        lambda: api.act_on_motif("AUTH_test", container, name, "expand"),
        lambda: api.detach_motif("AUTH_test", container, name),
    ):
        status, reason = refused(call)
        assert status in (400, 404), reason
        assert reason


@pytest.mark.parametrize(
    ("template", "params", "status", "reason"),
    [
        ("conkat", {"of": SOURCE}, 404, "unknown template `conkat`, did you mean `concat`"),
        ("durl", {"of": SOURCE}, 404, "did you mean `url`"),
        ("ünï", {"of": SOURCE}, 404, "expected one of"),
        ("x" * 1000, {"of": SOURCE}, 404, "expected one of"),
        ("concat", {"off": SOURCE}, 400, "did you mean `of`"),
        ("concat", {}, 400, "needs parameter `of`"),
        ("concat", {"of": "ünï"}, 400, "expected account/container/object"),
        ("concat", {"of": "AUTH_test/bi/" + "o" * LONGEST_OBJECT}, 400, "expected at most 1024"),
        ("concat", {"of": "AUTH_test/bi/none"}, 404, "does not exist"),
        ("concat", {"of": "AUTH_test/bi/o"}, 400, "from itself"),
        ("concat", {"of": ",".join([SOURCE] * 1000)}, 400, ""),
        ("compressed", {"source": SOURCE, "level": 10**18}, 400, "level"),
    ],
    ids=lambda one: str(one)[:30],
)
def test_a_motif_that_cannot_be_is_not_attached(api, template, params, status, reason):
    found, text = refused(api.attach_motif, "AUTH_test", "bi", "o", template, params)
    assert found in (status if isinstance(status, tuple) else (status,)), text
    assert reason in text
    assert api.motif("AUTH_test", "bi", "o")["motifs"] == []


@pytest.mark.parametrize(
    ("action", "more", "reason"),
    [
        ("contrakt", {}, "contract"),
        ("contract", {"verify": "ünï"}, "verify"),
        ("expand", {"verify": "head"}, "a parameter of contractions"),
    ],
)
def test_an_action_that_is_none_is_refused(api, action, more, reason):
    status, text = refused(api.act_on_motif, "AUTH_test", "bi", "o", action, **more)
    assert (status, reason in text) == (400, True), text


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ("0", ""),
        ("1", ""),
        ("100000TB", ""),
        ("-1", "target_size"),
        ("1000000000000000000", "expected 0 B to 100000 TB"),
        ("ünï", "target_size"),
    ],
)
def test_a_target_size_is_taken_or_refused_with_its_range(api, size, reason):
    sentence = f"FOR CONTAINER AUTH_test/bi DO SET elasticity WITH target_size={size}"
    if reason:
        status, text = refused(api.create_policy, sentence)
        assert (status, reason in text) == (400, True), text
        return
    created = api.create_policy(sentence, wait=10)
    api.delete_policy(created["id"])
    assert created["enforced"]["nodes"] == created["enforced"]["total"] >= 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("motif WITH template=conkat of='AUTH_test/bi-source/o'", "did you mean `concat`"),
        ("motif WITH template=ünï", "template"),
        ("motif WITH of='AUTH_test/bi-source/o'", "template"),
        ("elasticity", "target_size"),
        ("elasticity WITH target_sise=1GB", "target_size"),
        ("elasticity WITH target_size=1GB policy=lrü", "policy"),
    ],
)
def test_a_sentence_about_motifs_that_cannot_be_is_refused(api, words, reason):
    status, text = refused(api.create_policy, f"FOR CONTAINER AUTH_test/bi DO SET {words}")
    assert (status, reason in text) == (400, True), text


@pytest.mark.parametrize(
    ("name", "wanted", "reason"),
    [
        ("AUTH_test/none", 404, "no daemon keeps a space"),
        ("AUTH_test/" + "c" * 5000, 404, "no daemon keeps a space"),
        ("ünï", 400, "there is no project `ünï`"),
        ("\U0001f600/\U0001f600", 400, "there is no project `\U0001f600`"),
        ("a/b/c", 400, "there is no project `a`"),
    ],
)
def test_a_space_that_nobody_keeps_is_not_found(api, name, wanted, reason):
    status, text = refused(api.space, name)
    assert (status, reason in text) == (wanted, True), text
