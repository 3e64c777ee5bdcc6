from sluice_objects.classes.set import Set
from sluice_objects.testing import LocalHome


def test_a_member_is_added_and_removed_once():
    home = LocalHome(Set())
    assert home.call("add", member="x") == {"added": True, "size": 1}
    version = home.state.version
    assert home.call("add", member="x") == {"added": False, "size": 1}
    assert home.state.version == version
    assert home.call("contains", member="x") == {"contains": True, "size": 1}
    assert home.call("remove", member="x") == {"removed": True, "size": 0}
    assert home.call("remove", member="x") == {"removed": False, "size": 0}


def test_members_are_listed_by_pages():
    home = LocalHome(Set())
    for member in ("b", "ä", "a"):
        home.call("add", member=member)
    assert home.call("members", limit=2) == {"items": ["a", "b"], "next": "ä"}
    assert home.call("members", start="ä") == {"items": ["ä"], "next": None}
