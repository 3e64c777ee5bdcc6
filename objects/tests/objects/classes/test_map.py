import pytest

from sluice_objects.classes.arguments import LARGEST_VALUE, LONGEST_KEY
from sluice_objects.classes.map import Map
from sluice_objects.testing import LocalHome


@pytest.fixture
def home():
    return LocalHome(Map())


def keys(page):
    return [item["key"] for item in page["items"]]


def test_a_value_has_the_version_of_its_last_change(home):
    assert home.call("put", key="a", value=[1, {"x": None}]) == {"version": 2}
    assert home.call("put", key="b", value=b"\xff") == {"version": 3}
    assert home.call("get", key="a") == {"value": [1, {"x": None}], "version": 2}
    assert home.call("get", key="b") == {"value": b"\xff", "version": 3}


def test_version_0_puts_only_what_is_not_there(home):
    home.call("put", key="a", value=1, version=0)
    assert home.refusal("put", key="a", value=2, version=0).status == 412
    assert home.call("get", key="a")["value"] == 1


def test_a_condition_holds_for_the_key_alone(home):
    version = home.call("put", key="a", value=1)["version"]
    home.call("put", key="b", value=1)
    assert home.call("put", key="a", value=2, version=version) == {"version": 4}
    assert home.refusal("delete", key="a", version=version).status == 412
    home.call("delete", key="a", version=4)
    assert home.refusal("get", key="a").status == 404


def test_a_key_that_is_not_there_is_not_deleted(home):
    outcome = home.refusal("delete", key="a", version=0)
    assert (outcome.status, outcome.message) == (404, "there is no key `a`")


def test_pages_end_at_their_limit_and_tell_the_next_key(home):
    for key in ("b", "a", "ä", "ab", "c"):
        home.call("put", key=key, value=key)
    page = home.call("range", start="ab", limit=2)
    assert (keys(page), page["next"]) == (["ab", "b"], "c")
    page = home.call("range", start="c")
    assert (keys(page), page["next"]) == (["c", "ä"], None)
    assert keys(home.call("range", end="b")) == ["a", "ab"]
    page = home.call("prefix", prefix="a", limit=1)
    assert (keys(page), page["next"]) == (["a"], "ab")
    assert keys(home.call("prefix", prefix="a", start=page["next"])) == ["ab"]


def test_pages_end_before_an_answer_is_too_large(home):
    largest = bytes(LARGEST_VALUE - 5)
    for key in "abc":
        home.call("put", key=key * LONGEST_KEY, value=largest)
    page = home.call("range")
    assert (len(page["items"]), page["next"]) == (1, "b" * LONGEST_KEY)


@pytest.mark.parametrize(("members", "status", "message"), [
    ({"key": "a", "value": bytes(LARGEST_VALUE)}, 413, "argument `value` has 524293 bytes, expected at most 524288"),
    ({"key": "k" * 1025, "value": 1}, 400, "argument `key` has 1025 bytes, expected text of 1 to 1024 bytes"),
    ({"key": "", "value": 1}, 400, "argument `key` has 0 bytes, expected text of 1 to 1024 bytes"),
    ({"key": b"a", "value": 1}, 400, "argument `key` is bytes, expected text of 1 to 1024 bytes"),
    ({"key": "a"}, 400, "argument `value` is missing, expected a value"),
    ({"kye": "a", "value": 1}, 400, "unknown argument `kye`, did you mean `key`"),
    ({"x": "a", "value": 1}, 400, "unknown argument `x`, expected `key` or `value` or `version`"),
    ({"key": "a", "value": 1, "version": True}, 400, "argument `version` is true or false, expected an integer from 0"),
])  # fmt: skip
def test_errors_say_what_is_expected(home, members, status, message):
    outcome = home.refusal("put", **members)
    assert outcome.status == status
    assert outcome.message.startswith(message)


def test_a_million_keys_in_one_call_are_refused(home):
    outcome = home.run("put", {str(number): number for number in range(1_000_000)})
    assert (outcome.status, outcome.message) == (400, "unknown argument `0`, expected `key` or `value` or `version`")
