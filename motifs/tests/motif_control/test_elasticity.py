"""The space of an object, by the policies."""

import pytest

from sluice_core.messages.elasticity import Membership, Space, SpacePart, membership
from sluice_core.messages.policies import Assignment, Target
from sluice_core.resolve import Candidates
from sluice_motif_control.actions import attachments


def assignment(level, name="", keyword="elasticity", verb="set", created=1, select=None, **params):
    target = Target(level, select or ("name" if name or level == "cluster" else "all"), name)
    said_by = f"{level}-{keyword}-{created}"
    return Assignment(f"{said_by}.0", said_by, "motif", verb, keyword, target, params=params, created=created)


def pipeline(*found):
    return Candidates(found).resolve({}).get("motif", ())


def space_of(*found):
    member = membership(pipeline(*found), "AUTH_a", "c")
    return member and (member.space.path, member.space.target_size, member.part.path)


TENANT = assignment("tenant", "AUTH_a", target_size=100)
CONTAINER = assignment("container", "AUTH_a/c", target_size=10)
PART = assignment("container", "AUTH_a/c", floor=5, weight=3)


@pytest.mark.parametrize(
    ("found", "space"),
    [
        ([], None),
        ([TENANT], ("AUTH_a", 100, "AUTH_a")),
        ([TENANT, CONTAINER], ("AUTH_a/c", 10, "AUTH_a/c")),
        ([TENANT, PART], ("AUTH_a", 100, "AUTH_a/c")),
        ([PART], None),
        ([TENANT, assignment("container", "AUTH_a/c", verb="delete")], None),
        ([assignment("tenant", target_size=7)], ("AUTH_a", 7, "AUTH_a")),
        ([assignment("container", "gold", select="group", target_size=7)], ("AUTH_a/c", 7, "AUTH_a/c")),
        ([assignment("cluster", target_size=9)], ("*", 9, "*")),
        ([TENANT, assignment("tenant", "AUTH_a", target_size=50, created=2)], ("AUTH_a", 50, "AUTH_a")),
        ([TENANT, assignment("container", "AUTH_a/c", keyword="motif", template="concat")], ("AUTH_a", 100, "AUTH_a")),
    ],
)  # fmt: skip
def test_the_narrowest_space_wins_and_narrower_rules_describe_its_parts(found, space):
    assert space_of(*found) == space


def test_what_is_said_of_a_space_is_kept_and_nonsense_of_a_newer_version_is_not():
    said = assignment("container", "AUTH_a/c", target_size=10, policy="clock", min_age=60.0, verify="expand")
    member = membership(pipeline(said), "AUTH_a", "c")
    assert member == Membership(Space("AUTH_a/c", "container", 10, "clock", 60.0, "expand"), SpacePart("AUTH_a/c"))
    odd = assignment("container", "AUTH_a/c", target_size=10, policy="arc", verify="guess", min_age="late")
    member = membership(pipeline(odd), "AUTH_a", "c")
    assert (member.space.policy, member.space.verify, member.space.min_age) == ("lru", "head", 0.0)


def test_policies_attach_what_the_metadata_of_an_object_say():
    said = assignment("container", "AUTH_a/c", keyword="motif", template="url", source="meta:Origin", max_age=3)
    found = pipeline(TENANT, said)
    assert attachments(found, {"origin": "http://a/b"}) == [
        {"template": "url", "params": {"source": "http://a/b", "max_age": 3}}
    ]
    assert attachments(found, {}) == []
