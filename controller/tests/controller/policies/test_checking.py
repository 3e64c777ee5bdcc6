"""``/policies/check``: the meaning of a sentence and the policies that it would override, before it is a policy."""

import pytest

TENANT = "FOR TENANT AUTH_a DO SET compression, SET encryption"


@pytest.fixture
def check(api):
    """The API's answer about one sentence."""

    def ask(sentence, status=200, **body):
        answer = api.post("/policies/check", {"policy": sentence, **body}, format="json")
        assert answer.status_code == status, answer.content
        return answer.json()["policies"][0] if status == 200 else answer.json()["error"]

    return ask


def words(found):
    return [(one["policy"], one["keyword"], one["reason"]) for one in found]


def test_it_says_in_words_what_a_sentence_means(check):
    found = check("FOR TENANT AUTH_a WHEN PUTS_SEC > 3 SUSTAINED 5s DO SET compression WITH engine=zstd TRANSIENT")
    said = {one["about"]: one["text"] for one in found["explanation"]}
    assert list(said) == ["target", "kind", "fires", "action 1"]
    assert "tenant `AUTH_a`" in said["target"]
    assert said["fires"].startswith("after 5 s without a break in which PUTS_SEC > 3/s")
    assert "with engine=zstd" in said["action 1"]


def test_it_names_the_actions_that_a_narrower_sentence_takes_the_place_of(check, create):
    wide = create(TENANT)["id"]
    create("FOR TENANT AUTH_b DO SET compression")
    found = check("FOR CONTAINER AUTH_a/logs DO SET noop")
    # encryption is inherited by narrower scopes
    assert words(found["overrides"]) == [(wide, "compression", "narrower")]
    assert (found["overridden_by"], found["more_overridden"]) == ([], False)


def test_it_names_the_policies_that_hold_in_its_place_inside_its_target(check, create):
    inside = create("FOR CONTAINER AUTH_a/logs WHEN PUTS_SEC > 3 DO SET noop")["id"]
    create("FOR CONTAINER AUTH_b/logs DO SET noop")
    found = check("FOR TENANT AUTH_a DO SET compression")
    assert found["overrides"] == []
    assert words(found["overridden_by"]) == [(inside, "compression", "narrower")]


def test_of_two_at_one_scope_the_newer_wins(check, create):
    old = create("FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET compression, SET noop")["id"]
    found = check("FOR TENANT AUTH_a DO SET compression WITH engine=gzip")
    assert words(found["overrides"]) == [(old, "compression", "newer")]
    found = check("FOR TENANT AUTH_a WHEN PUTS_SEC > 9 DO DELETE noop")
    assert ("noop", old) in {(one["keyword"], one["policy"]) for one in found["overrides"]}


def test_other_kinds_and_policies_that_are_switched_off_are_left_as_they_are(api, check, create):
    off = create("FOR TENANT AUTH_a DO SET compression")["id"]
    api.put(f"/policies/{off}", {"enabled": False}, format="json")
    create("FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=30MBps")
    assert check("FOR CONTAINER AUTH_a/logs DO SET noop")["overrides"] == []


def test_a_container_takes_of_its_tenants_bandwidth_what_it_speaks_of(check, create):
    create("FOR TENANT AUTH_a DO SET bandwidth WITH put_bw=30MBps")
    read = create("FOR TENANT AUTH_a DO SET bandwidth WITH get_bw=30MBps, storage_policy=gold")["id"]
    found = check("FOR CONTAINER AUTH_a/logs DO SET bandwidth WITH get_bw=3MBps")
    assert words(found["overrides"]) == [(read, "bandwidth", "narrower")]


def test_of_many_some_are_named_and_it_says_so(check, create, monkeypatch):
    monkeypatch.setattr("sluice_controller.policies.checking.MOST", 2)
    for number in range(3):
        create(f"FOR CONTAINER AUTH_a/c{number} DO SET noop")
    found = check("FOR TENANT AUTH_a DO SET compression")
    assert (len(found["overridden_by"]), found["more_overridden"]) == (2, True)


def test_another_text_of_a_policy_is_checked_without_that_policy(check, create):
    mine = create("FOR TENANT AUTH_a DO SET compression")["id"]
    newer = create("FOR TENANT AUTH_a WHEN PUTS_SEC > 3 DO SET compression WITH level=1")["id"]
    text = "FOR TENANT AUTH_a DO SET compression WITH engine=gzip"
    assert "already" in check(text, 409)["message"]
    found = check(text, replaces=mine)
    # the policy keeps its age
    assert (words(found["overridden_by"]), found["overrides"]) == ([(newer, "compression", "newer")], [])
    assert "one sentence" in check(f"{text}; FOR CLUSTER DO SET noop", 400, replaces=mine)["message"]
    assert "there is no policy `none`" in check(text, 404, replaces="none")["message"]
    assert "`replaces` is empty" in check(text, 400, replaces="")["message"]
    assert "`replaces` is `5`, expected a text" in check(text, 400, replaces=5)["message"]


def test_metrics_are_compared_with_numbers_that_programs_can_read(check, create):
    text = "FOR CONTAINER AUTH_a/c WHEN NOT (PUTS_SEC > 3 OR GET_BW >= 2MBps) AND OBJECT_TYPE = DOCS DO SET compression"
    rest = {"level": "container", "path": "AUTH_a/c"}
    found = [
        {"metric": "PUTS_SEC", **rest, "operator": "<=", "value": 3.0, "unit": "per_second"},
        {"metric": "GET_BW", **rest, "operator": "<", "value": 2e6, "unit": "bytes_per_second"},
    ]
    assert check(text)["conditions"] == found
    assert create(text)["conditions"] == found


def test_a_group_is_measured_by_member_and_a_node_whatever_the_target_is(check):
    (one,) = check("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET compression")["conditions"]
    assert (one["level"], one["path"]) == ("tenant", "")
    (one,) = check("FOR TENANT AUTH_a WHEN NODE_CPU AT n1 > 50% DO SET compression")["conditions"]
    assert (one["level"], one["path"], one["value"]) == ("node", "n1", 0.5)


ALL = """FOR TENANT AUTH_a WHEN PUTZ_SEC > 3 DO SET compresion;
FOR CONTAINER AUTH_a/x DO SET compression WITH engine=zst"""


def test_all_errors_are_told_with_their_places_and_near_misses(check):
    problems = check(ALL, 400)["problems"]
    lines = ALL.split("\n")
    meant = [lines[one["line"] - 1][one["column"] - 1 : one["end_column"] - 1] for one in problems]
    assert meant == ["PUTZ_SEC", "compresion", "zst"]
    assert [one["near_miss"] for one in problems] == ["PUTS_SEC", "compression", "zstd"]
